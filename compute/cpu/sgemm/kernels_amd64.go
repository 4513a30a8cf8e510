package sgemm

//go:generate go run -C ../gen ./sgemm -out ../sgemm/micro_amd64.s -stubs ../sgemm/micro_amd64.go -pkg sgemm

import "optimus/internal/level"

// micro is a microkernel in assembly; see gen/sgemm/kernel.go. Strides are in bytes.
type micro func(k int, a, b, c *float32, ldb, ldc int, mask uint64, add int)

var (
	// by vectors of 16 columns, then rows
	micro512 = [3][]micro{{
		kernel512x1x16, kernel512x2x16, kernel512x3x16, kernel512x4x16, kernel512x5x16, kernel512x6x16, kernel512x7x16,
		kernel512x8x16, kernel512x9x16, kernel512x10x16, kernel512x11x16, kernel512x12x16, kernel512x13x16, kernel512x14x16,
	}, {
		kernel512x1x32, kernel512x2x32, kernel512x3x32, kernel512x4x32, kernel512x5x32, kernel512x6x32, kernel512x7x32,
		kernel512x8x32, kernel512x9x32, kernel512x10x32, kernel512x11x32, kernel512x12x32, kernel512x13x32, kernel512x14x32,
	}, {
		kernel512x1x48, kernel512x2x48, kernel512x3x48, kernel512x4x48,
		kernel512x5x48, kernel512x6x48, kernel512x7x48, kernel512x8x48,
	}}
	micro256 = [...]micro{
		kernel256x1x16, kernel256x2x16, kernel256x3x16, kernel256x4x16, kernel256x5x16, kernel256x6x16,
	}

	avx512 = kernels{
		level: level.AVX512,
		narrow: &family{
			mr: 14, nr: 32, mc: 168, nc: 3072, inPlace: 28,
			ragged: true, tile: tileAVX512, rows: rowsAVX512, block: 16, transpose: transposeAVX512,
		},
		wide: &family{
			mr: 8, nr: 48, mc: 336, nc: 3072, inPlace: 24,
			ragged: true, tile: tileAVX512, rows: rowsAVX512, block: 16, transpose: transposeAVX512,
		},
	}
	avx2 = kernels{
		level: level.AVX2,
		narrow: &family{
			mr: 6, nr: 16, mc: 504, nc: 3072, inPlace: 12,
			tile: tileAVX2, rows: rowsAVX2, block: 8, transpose: transposeAVX2,
		},
	}
)

// kernelFor returns the kernels of a level that is present.
func kernelFor(name string) Kernel {
	switch name {
	case level.AVX512:
		return Kernel{&avx512}
	case level.AVX2:
		return Kernel{&avx2}
	}
	return Kernel{&plain}
}

// size of an element in bytes.
const size = 4

func tileAVX512(h, w, kb int, a, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	micro512[(w-1)/16][h-1].run(w, kb, a, b, ldb, c, ldc, accumulate)
}

func tileAVX2(h, w, kb int, a, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	micro256[h-1].run(w, kb, a, b, ldb, c, ldc, accumulate)
}

func (f micro) run(w, kb int, a, b []float32, ldb int, c []float32, ldc int, accumulate bool) {
	add := 0
	if accumulate {
		add = 1
	}
	f(kb, &a[0], &b[0], &c[0], ldb*size, ldc*size, 1<<w-1, add)
}

func rowsAVX512(kb, w, width int, src []float32, lds int, dst []float32, ldd int) {
	f := rows512x16
	switch {
	case width > 32:
		f = rows512x48
	case width > 16:
		f = rows512x32
	}
	f(kb, &src[0], lds*size, &dst[0], ldd*size, 1<<w-1)
}

func rowsAVX2(kb, w, _ int, src []float32, lds int, dst []float32, ldd int) {
	rows256x16(kb, &src[0], lds*size, &dst[0], ldd*size, w)
}

func transposeAVX512(rows int, src []float32, lds int, dst []float32, ldd int) {
	transpose16(rows, &src[0], lds*size, &dst[0], ldd*size)
}

func transposeAVX2(rows int, src []float32, lds int, dst []float32, ldd int) {
	transpose8(rows, &src[0], lds*size, &dst[0], ldd*size)
}
