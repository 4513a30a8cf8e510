package conv

import "testing"

// FuzzShape plans any shape whatever: it is refused or computed right at every
// level.
func FuzzShape(f *testing.F) {
	f.Add(3, 9, 20, 16, 7, 7, 2, 2, 3, 3, 1)
	f.Add(32, 7, 7, 32, 3, 3, 1, 1, 1, 1, 8)
	f.Add(20, 8, 33, 40, 1, 1, 2, 2, 0, 0, 1)
	f.Add(1, 12, 50, 32, 11, 41, 2, 2, 5, 20, 1)
	f.Add(6, 3, 3, 9, 2, 3, 5, 4, 2, 1, 3)
	f.Fuzz(func(t *testing.T, c, h, w, o, kh, kw, strideH, strideW, padH, padW, groups int) {
		s := Shape{C: c, H: h, W: w, O: o, KH: kh, KW: kw, StrideH: strideH, StrideW: strideW, PadH: padH, PadW: padW, Groups: groups}
		normal, err := s.normal()
		if err != nil {
			return
		}
		if normal.C > 100 || normal.O > 100 || normal.H+2*normal.PadH > 60 || normal.W+2*normal.PadW > 100 || normal.KH*normal.KW > 500 {
			t.Skip("too large to compute by definition")
		}
		p := newProblem(normal, 1)
		each(t, func(t *testing.T, name string) {
			if err := check(p, Config{Level: name}, 0.5); err != nil {
				t.Error(err)
			}
		})
	})
}
