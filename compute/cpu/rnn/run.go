package rnn

func (s LSTM) forwardAt(name string, t Tile) {
	t.check("LSTM.Forward", array{"Gates", s.Gates, 4}, array{"CPrev", s.CPrev, 1}, array{"HPrev", s.HPrev, 1},
		array{"C", s.C, 1}, array{"H", s.H, 1})
	k := kernelsAt(name)
	for b := range t.rows() {
		prev, c, h := t.row(s.CPrev, b, 1), t.row(s.C, b, 1), t.row(s.H, b, 1)
		if !t.works(b) {
			copy(c, prev)
			copy(h, t.row(s.HPrev, b, 1))
			continue
		}
		k.lstm(t.row(s.Gates, b, 4), prev, c, h)
	}
}

func (s LSTM) backwardAt(name string, t Tile, d LSTMGrad) {
	t.check("LSTM.Backward", array{"Gates", s.Gates, 4}, array{"CPrev", s.CPrev, 1}, array{"C", s.C, 1},
		array{"DGates", d.DGates, 4}, array{"DC", d.DC, 1}, array{"DH", d.DH, 1}, array{"DHPrev", d.DHPrev, 1})
	k := kernelsAt(name)
	for b := range t.rows() {
		dgates, dh, dprev := t.row(d.DGates, b, 4), t.row(d.DH, b, 1), t.row(d.DHPrev, b, 1)
		if !t.works(b) {
			clear(dgates)
			copy(dprev, dh)
			continue
		}
		k.lstmGrad(dgates, t.row(s.Gates, b, 4), t.row(s.CPrev, b, 1), t.row(s.C, b, 1), t.row(d.DC, b, 1), dh)
		clear(dprev)
	}
}

func (s GRU) forwardAt(name string, t Tile) {
	t.check("GRU.Forward", array{"X", s.X, 3}, array{"U", s.U, 1}, array{"HPrev", s.HPrev, 1}, array{"H", s.H, 1})
	k := kernelsAt(name)
	for b := range t.rows() {
		prev, h := t.row(s.HPrev, b, 1), t.row(s.H, b, 1)
		if !t.works(b) {
			copy(h, prev)
			continue
		}
		k.gru(t.row(s.X, b, 3), t.row(s.U, b, 1), prev, h)
	}
}

func (s GRU) backwardAt(name string, t Tile, d GRUGrad) {
	t.check("GRU.Backward", array{"X", s.X, 3}, array{"U", s.U, 1}, array{"HPrev", s.HPrev, 1},
		array{"DX", d.DX, 3}, array{"DU", d.DU, 1}, array{"DH", d.DH, 1}, array{"DHPrev", d.DHPrev, 1})
	k := kernelsAt(name)
	for b := range t.rows() {
		dx, du, dh, dprev := t.row(d.DX, b, 3), t.row(d.DU, b, 1), t.row(d.DH, b, 1), t.row(d.DHPrev, b, 1)
		if !t.works(b) {
			clear(dx)
			clear(du)
			copy(dprev, dh)
			continue
		}
		k.gruGrad(dx, du, t.row(s.X, b, 3), t.row(s.U, b, 1), t.row(s.HPrev, b, 1), dprev, dh)
	}
}
