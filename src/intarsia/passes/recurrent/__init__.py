"""Recurrent layers (RNN, GRU, LSTM) as operators: the cell of one step, and the ways to repeat it."""
