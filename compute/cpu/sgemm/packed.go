package sgemm

import "fmt"

// Packed is a right factor in the order in which a kernel reads it. Packing costs
// about as much as multiplying ten to twenty rows, so it pays where a factor serves many
// products: the weights of a recurrent layer over the steps of a sequence, or
// of any layer over the parts of a batch that several cores share.
//
// The zero value is empty. Any number of goroutines may multiply with a Packed at
// once, but not while it is being packed.
type Packed struct {
	family *family
	grid   grid
	data   []float32
}

// Pack makes p hold op(B), k×n, as Gemm takes it, for the kernel of this process. It
// copies: later changes of b do not show. It reuses p's memory if that suffices.
//
// Pack panics where Gemm does.
func (p *Packed) Pack(transB bool, n, k int, b []float32, ldb int) {
	must().Pack(p, transB, n, k, b, ldb)
}

// Pack is [Packed.Pack] with this kernel.
func (kn Kernel) Pack(p *Packed, transB bool, n, k int, b []float32, ldb int) {
	if n < 0 || k < 0 {
		panic(fmt.Sprintf("sgemm: negative size n=%d k=%d", n, k))
	}
	f := kn.family
	if n == 0 || k == 0 {
		*p = Packed{f, grid{n: n, k: k}, p.data}
		return
	}
	from := operand("B", k, n, b, ldb, transB)
	*p = Packed{f, f.grid(n, k), p.data}
	enlarge(&p.data, k*roundUp(n, f.vector))
	var spans [4]span
	for j := 0; j < n; j += p.grid.nb {
		for q := 0; q < k; q += p.grid.kb {
			for _, sp := range f.spans(min(p.grid.nb, n-j), spans[:0]) {
				f.pack(sp, min(p.grid.kb, k-q), from, j, q, p.data[p.grid.offset(f, j, q):])
			}
		}
	}
}

// GemmPacked computes C = op(A)·B, or C += op(A)·B if accumulate, where A has m
// rows and B is a packed factor. The bits are those that Gemm gives with
// the kernel that packed B. It panics where Gemm does.
func GemmPacked(transA bool, m int, a []float32, lda int, b *Packed, accumulate bool, c []float32, ldc int) {
	n, k := b.grid.n, b.grid.k
	if done(m, n, k, accumulate, c, ldc) {
		return
	}
	p := product{
		family: b.family, grid: b.grid, m: m, a: operand("A", m, k, a, lda, transA), packed: b.data,
		accumulate: accumulate, c: c, ldc: ldc,
	}
	p.multiply()
}
