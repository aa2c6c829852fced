"use strict";
(function () {
  // In a frame of a notebook, links to sections would lead to the notebook.
  if (location.protocol === "about:") {
    for (const link of document.querySelectorAll("nav a")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        document.querySelector(link.getAttribute("href")).scrollIntoView();
      });
    }
  }
  const holder = document.getElementById("details");
  const frame = document.getElementById("frame");
  if (!holder || !frame) return;
  const facts = JSON.parse(holder.textContent);
  const svg = frame.querySelector("svg");
  const panel = document.getElementById("picked");
  const width = Number(svg.dataset.width), height = Number(svg.dataset.height);
  let scale = 1;

  function zoomTo(next, x, y) {
    const fixed = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
    scale = Math.min(4, Math.max(0.02, next));
    svg.style.width = width * scale + "px";
    svg.style.height = height * scale + "px";
    frame.scrollLeft = fixed[0] * scale - x;
    frame.scrollTop = fixed[1] * scale - y;
  }
  function zoomBy(factor) { zoomTo(scale * factor, frame.clientWidth / 2, frame.clientHeight / 2); }
  function fit() {
    zoomTo(Math.min((frame.clientWidth - 2) / width, (frame.clientHeight - 2) / height), 0, 0);
  }
  function start() {
    frame.style.height = Math.min(frame.clientHeight, height + 16) + "px";
    zoomTo(Math.min(1, Math.max((frame.clientWidth - 2) / width, 0.6)), 0, 0);
    const first = svg.querySelector(".node").getBoundingClientRect(), outer = frame.getBoundingClientRect();
    frame.scrollLeft += first.left + first.width / 2 - outer.left - frame.clientWidth / 2; }
  document.getElementById("closer").onclick = () => zoomBy(1.4);
  document.getElementById("farther").onclick = () => zoomBy(1 / 1.4);
  document.getElementById("fit").onclick = fit;
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = frame.getBoundingClientRect();
    zoomTo(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  let held = null;
  frame.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") held = [event.clientX, event.clientY, frame.scrollLeft, frame.scrollTop];
  });
  window.addEventListener("pointermove", (event) => {
    if (!held) return;
    frame.classList.add("held");
    frame.scrollLeft = held[2] - (event.clientX - held[0]);
    frame.scrollTop = held[3] - (event.clientY - held[1]);
  });
  window.addEventListener("pointerup", () => { held = null; frame.classList.remove("held"); });

  function add(parent, tag, text) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }
  function numbers(text) {
    const all = new Set();
    for (const part of text ? text.split(",") : []) {
      const [low, high] = part.split("..").map(Number);
      for (let number = low; number <= (high === undefined ? low : high); number += 1) all.add(number);
    }
    return all;
  }
  function list(title, items) {
    if (!items.length) return;
    add(panel, "h3", title);
    const rows = add(panel, "ul");
    for (const item of items) add(rows, "li", item);
  }
  function show(number) {
    const [operator, name, toolchain, inputs, kernels, remarks] = facts.nodes[number];
    for (const other of svg.querySelectorAll(".picked, .peer")) other.classList.remove("picked", "peer");
    const region = facts.regions.find((item) => numbers(item.nodes).has(number));
    if (region) {
      for (const peer of numbers(region.nodes)) {
        const element = svg.querySelector(`[data-n="${peer}"]`);
        if (element) element.classList.add("peer");
      }
    }
    const self = svg.querySelector(`[data-n="${number}"]`);
    self.classList.add("picked");
    panel.textContent = "";
    add(panel, "h3", `${number}: ${operator || "input"}${name ? ", " + name : ""}`);
    if (!operator) { add(panel, "p", "An input of the model."); return; }
    add(panel, "p", toolchain ? `${toolchain} runs it.` : "The winner has no node of this name: it was folded or renamed.");
    if (inputs) add(panel, "p", `It reads ${inputs}.`).className = "quiet";
    list("Kernels", kernels.map((row) => {
      const [kernel, engine, time, share, roof] = facts.kernels[row];
      return `${time} (${share}), ${engine} ${kernel}` + (roof === "-" ? "" : `, ${roof} of its roofline`);
    }));
    list("Remarks of passes", remarks.map((row) => facts.remarks[row]));
    if (region) {
      add(panel, "h3", facts.basis ? "Its part before the decisions" : "Its part of the model");
      if (facts.basis) add(panel, "p", facts.basis).className = "quiet";
      const inside = facts.basis ? "" : `, in the model ${region.measured}`;
      add(panel, "p", `${region.label} (${region.nodes}) on ${region.toolchain}: alone ${region.alone}${inside}.`);
      if (region.rival) add(panel, "p", `Runner-up: ${region.rival}`);
      else if (facts.whole && !facts.basis) add(panel, "p", `Its part was not measured apart; ${facts.whole}.`);
    } else if (facts.whole) {
      add(panel, "p", `Counterfactual: ${facts.whole}.`);
    }
    const tried = facts.regions.flatMap((item) => item.tried).filter((item) => numbers(item[2]).has(number));
    list("Candidates with this node", tried.map(([spec, label, nodes, alone, interval, fate]) =>
      `${spec}, ${label} (${nodes}): ${alone}${interval ? " (" + interval + ")" : ""}: ${fate}`));
    if (region && region.untried + region.left_out) {
      add(panel, "p", `Of its part, ${region.untried} more candidates were not tried, and ${region.left_out} are not listed.`).className = "quiet";
    }
    if (!tried.length) add(panel, "p", facts.gap || "No candidate of a toolchain contains it alone or with others.").className = "gap";
  }
  function goTo(number) {
    show(number);
    const box = svg.querySelector(`[data-n="${number}"]`).getBoundingClientRect(), outer = frame.getBoundingClientRect();
    frame.scrollLeft += box.left - outer.left - frame.clientWidth / 2;
    frame.scrollTop += box.top - outer.top - frame.clientHeight / 2;
  }
  for (const element of svg.querySelectorAll(".node")) {
    const number = Number(element.dataset.n);
    element.addEventListener("click", () => show(number));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(number); }
    });
  }
  document.getElementById("find").addEventListener("change", (event) => {
    const text = event.target.value.trim().toLowerCase();
    const match = Object.keys(facts.nodes).find((number) => text &&
      (number === text || facts.nodes[number][1].toLowerCase().includes(text) || facts.nodes[number][0].toLowerCase() === text));
    if (match === undefined) { panel.textContent = text ? `No node is called ${text}.` : ""; return; }
    goTo(Number(match));
  });
  start();
  const linked = /^#node-(\d+)$/.exec(location.hash);
  if (linked && facts.nodes[linked[1]]) goTo(Number(linked[1]));
})();
