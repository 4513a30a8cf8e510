package sgemm

// plainFamily is Go code alone.
var plainFamily = family{mr: 2, nr: 4, mc: 128, nc: 1024, tile: tilePlain, rows: rowsPlain}

// tilePlain is the microkernel in Go. The conversions forbid the compiler to
// fuse a product with its sum, so that all architectures give the same bits.
func tilePlain(h, w, kb int, a, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	if h == 2 {
		tile2x4(kb, a, b, c, ldc, accumulate)
		return
	}
	var c0, c1, c2, c3 float32
	for p := range kb {
		x, y := a[p], b[p*4:p*4+4]
		c0 += float32(x * y[0])
		c1 += float32(x * y[1])
		c2 += float32(x * y[2])
		c3 += float32(x * y[3])
	}
	store4(c, c0, c1, c2, c3, accumulate)
}

func tile2x4(kb int, a, b, c []float32, ldc int, accumulate bool) {
	var c0, c1, c2, c3, d0, d1, d2, d3 float32
	a, b = a[:2*kb], b[:4*kb]
	for len(a) >= 2 && len(b) >= 4 {
		x, y := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c0 += float32(x * b0)
		c1 += float32(x * b1)
		c2 += float32(x * b2)
		c3 += float32(x * b3)
		d0 += float32(y * b0)
		d1 += float32(y * b1)
		d2 += float32(y * b2)
		d3 += float32(y * b3)
		a, b = a[2:], b[4:]
	}
	store4(c, c0, c1, c2, c3, accumulate)
	store4(c[ldc:], d0, d1, d2, d3, accumulate)
}

func store4(c []float32, c0, c1, c2, c3 float32, accumulate bool) {
	c = c[:4]
	if accumulate {
		c[0] += c0
		c[1] += c1
		c[2] += c2
		c[3] += c3
		return
	}
	c[0], c[1], c[2], c[3] = c0, c1, c2, c3
}

func rowsPlain(kb, w, width int, src []float32, lds int, dst []float32, ldd int) {
	for p := range kb {
		d := dst[p*ldd : p*ldd+width]
		copy(d, src[p*lds:p*lds+w])
		clear(d[w:])
	}
}

var plain = kernels{level: "plain", narrow: &plainFamily}
