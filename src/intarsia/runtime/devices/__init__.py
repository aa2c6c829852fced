"""Several devices in one program (DESIGN section 4): cores of the CPU, accelerators, and mocks for tests.

device, device_name      what a device is; how devices are named
core_groups, worker      the cores of a CPU device; the one thread that works for a device
cpu, mock                devices on the host; those of other kinds are registered by entry point
                         `intarsia.devices`
fitting                  values copied into the memory of a device
open_devices             opening the devices of a plan
schedule                 the steps of each device, and the steps of others that they wait for
device_buffers           one arena on each device
progress, runner         programs without branches: devices work in parallel
interpreter              branches and calls of blocks: one step after the other
"""
