//go:build amd64 || arm64

package conv

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"optimus/compute/cpu/conv"
)

// library is oneDNN, loaded at run time and held to one thread. Of its C API
// (dnnl.h) it has what convolutions need. All handles are pointers of C. Version 2
// describes memory and operations by structures, which we only hand through, so
// that buffers larger than they are do; version 3 hides them behind handles.
type library struct {
	name           string
	major          int
	symbols        map[string]uintptr
	engine, stream uintptr
	keep           []any   // what C points to
	owned          []owned // what C gave us
}

// owned is a handle and the function that frees it.
type owned struct {
	free   string
	handle *uintptr
}

// own allocates a handle that release frees.
func (l *library) own(free string) *uintptr {
	h := new(uintptr)
	l.owned = append(l.owned, owned{free, h})
	return h
}

// release frees the memory and primitives of all peers made so far.
func (l *library) release() {
	for _, o := range l.owned {
		if *o.handle != 0 {
			l.call(o.free, *o.handle)
		}
	}
	l.keep, l.owned = nil, nil
}

// Values of the library's enumerations.
const (
	engineCPU, streamInOrder     = 1, 1
	typeF32, tagAny              = 3, 1
	forwardTraining, direct      = 64, 1
	argSrc, argDst, argWeights   = 1, 17, 33
	argDiff                      = 128           // added to the number of an array for its gradient's
	querySrc, queryWei, queryDst = 129, 131, 133 // its gradient's is one more
	queryImplementation          = 8
	allocate                     = ^uintptr(0)
)

var common = []string{
	"dnnl_version", "dnnl_engine_create", "dnnl_stream_create", "dnnl_stream_wait", "dnnl_primitive_create",
	"dnnl_primitive_execute", "dnnl_primitive_desc_query_md", "dnnl_primitive_desc_query", "dnnl_memory_create",
	"dnnl_reorder_primitive_desc_create", "dnnl_memory_destroy", "dnnl_primitive_destroy", "dnnl_primitive_desc_destroy",
}

var ofVersion = map[int][]string{
	2: {
		"dnnl_memory_desc_init_by_strides", "dnnl_memory_desc_init_by_tag", "dnnl_convolution_forward_desc_init",
		"dnnl_convolution_backward_data_desc_init", "dnnl_convolution_backward_weights_desc_init", "dnnl_primitive_desc_create",
	},
	3: {
		"dnnl_memory_desc_create_with_strides", "dnnl_memory_desc_create_with_tag", "dnnl_convolution_forward_primitive_desc_create",
		"dnnl_convolution_backward_data_primitive_desc_create", "dnnl_convolution_backward_weights_primitive_desc_create",
	},
}

// oneDNN loads the library.
func oneDNN() (*library, error) {
	if err := os.Setenv("OMP_NUM_THREADS", "1"); err != nil {
		return nil, fmt.Errorf("set OMP_NUM_THREADS: %w", err)
	}
	l := &library{symbols: map[string]uintptr{}}
	var handle uintptr
	var failed error
	for _, so := range []string{"libdnnl.so.3", "libdnnl.so.2"} {
		h, err := purego.Dlopen(so, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			handle, failed = h, nil
			break
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return nil, fmt.Errorf("load oneDNN: %w; install it (on Debian: apt-get install libdnnl2)", failed)
	}
	if err := l.resolve(handle, common); err != nil {
		return nil, err
	}
	v := *(**[3]int32)(unsafe.Pointer(new(l.call("dnnl_version"))))
	l.major, l.name = int(v[0]), fmt.Sprintf("oneDNN %d.%d.%d", v[0], v[1], v[2])
	if ofVersion[l.major] == nil {
		return nil, fmt.Errorf("load oneDNN: %s is not known here; versions 2 and 3 are", l.name)
	}
	if err := l.resolve(handle, ofVersion[l.major]); err != nil {
		return nil, err
	}
	// The calling thread alone computes, whatever the environment was when OpenMP was loaded.
	if set, err := purego.Dlsym(handle, "omp_set_num_threads"); err == nil {
		purego.SyscallN(set, 1)
	}
	err := l.try("dnnl_engine_create", at(&l.engine), engineCPU, 0)
	if err == nil {
		err = l.try("dnnl_stream_create", at(&l.stream), l.engine, streamInOrder)
	}
	return l, err
}

func (l *library) resolve(handle uintptr, names []string) error {
	for _, name := range names {
		p, err := purego.Dlsym(handle, name)
		if err != nil {
			return fmt.Errorf("load oneDNN: %w", err)
		}
		l.symbols[name] = p
	}
	return nil
}

func at[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// call calls a function of the library. What it points to must be kept in l.keep
// or be alive otherwise.
func (l *library) call(name string, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(l.symbols[name], args...)
	return r
}

// try calls a function that returns a status.
func (l *library) try(name string, args ...uintptr) error {
	if status := int32(l.call(name, args...)); status != 0 {
		return fmt.Errorf("oneDNN: %s returned status %d", name, status)
	}
	return nil
}

type dims [12]int64

func (l *library) dims(v ...int) uintptr {
	d := new(dims)
	for i, n := range v {
		d[i] = int64(n)
	}
	l.keep = append(l.keep, d)
	return at(d)
}

// array describes an array of float32, dense in the order of its dimensions or, if
// free, in the order that the library likes best.
func (l *library) array(free bool, n ...int) (uintptr, error) {
	strides := make([]int, len(n))
	for i, step := len(n)-1, 1; i >= 0; i-- {
		strides[i] = step
		step *= n[i]
	}
	how, last := "strides", l.dims(strides...)
	if free {
		how, last = "tag", tagAny
	}
	if l.major == 3 {
		md := new(uintptr)
		l.keep = append(l.keep, md)
		err := l.try("dnnl_memory_desc_create_with_"+how, at(md), uintptr(len(n)), l.dims(n...), typeF32, last)
		return *md, err
	}
	md := new([4096]byte)
	l.keep = append(l.keep, md)
	return at(md), l.try("dnnl_memory_desc_init_by_"+how, at(md), uintptr(len(n)), l.dims(n...), typeF32, last)
}

// geometry is the arguments that every direction shares.
type geometry struct{ src, wei, dst, strides, pad uintptr }

// describe creates the primitive descriptor of a direction.
func (l *library) describe(d Direction, g geometry, hint uintptr) (uintptr, error) {
	name := map[Direction]string{Forward: "forward", BackwardData: "backward_data", BackwardWeights: "backward_weights"}[d]
	arrays := []uintptr{g.src, g.wei, 0, g.dst} // third: the bias
	if d == BackwardData {
		arrays = []uintptr{g.src, g.wei, g.dst}
	}
	args := append([]uintptr{direct}, arrays...)
	if d == Forward {
		args = append([]uintptr{forwardTraining}, args...)
	}
	pd := l.own("dnnl_primitive_desc_destroy")
	if l.major == 3 {
		args = append([]uintptr{at(pd), l.engine}, args...)
		args = append(args, g.strides, 0, g.pad, g.pad)
		if d != Forward {
			args = append(args, hint)
		}
		err := l.try("dnnl_convolution_"+name+"_primitive_desc_create", append(args, 0)...)
		return *pd, err
	}
	op := new([16384]byte)
	l.keep = append(l.keep, op)
	args = append([]uintptr{at(op)}, args...)
	if err := l.try("dnnl_convolution_"+name+"_desc_init", append(args, g.strides, g.pad, g.pad)...); err != nil {
		return 0, err
	}
	err := l.try("dnnl_primitive_desc_create", at(pd), at(op), 0, l.engine, hint)
	return *pd, err
}

// memory allocates what a description asks for, or wraps data.
func (l *library) memory(desc, data uintptr) (uintptr, error) {
	m := l.own("dnnl_memory_destroy")
	err := l.try("dnnl_memory_create", at(m), desc, l.engine, data)
	return *m, err
}

// argument of an execution.
type argument struct {
	number int32
	memory uintptr
}

// execution is a primitive with its arguments.
type execution struct {
	l         *library
	primitive *uintptr
	args      []argument
}

func (l *library) execution(pd uintptr, args ...argument) (*execution, error) {
	e := &execution{l: l, primitive: l.own("dnnl_primitive_destroy"), args: args}
	return e, l.try("dnnl_primitive_create", at(e.primitive), pd)
}

func (e *execution) run() {
	l := e.l
	purego.SyscallN(l.symbols["dnnl_primitive_execute"], *e.primitive, l.stream, uintptr(len(e.args)), at(&e.args[0]))
	purego.SyscallN(l.symbols["dnnl_stream_wait"], l.stream)
	runtime.KeepAlive(e)
}

// reorder copies between two memories of any order.
func (l *library) reorder(from, fromDesc, to, toDesc uintptr) error {
	pd := l.own("dnnl_primitive_desc_destroy")
	if err := l.try("dnnl_reorder_primitive_desc_create", at(pd), fromDesc, l.engine, toDesc, l.engine, 0); err != nil {
		return err
	}
	e, err := l.execution(*pd, argument{argSrc, from}, argument{argDst, to})
	if err != nil {
		return err
	}
	e.run()
	return nil
}

// peer is a convolution as oneDNN computes it.
type peer struct {
	l         *library
	name      string // of the implementation
	run       func()
	out, desc uintptr // the result
	plain     uintptr // its description in row-major order
	size      int
}

// prepare makes the convolution of a batch in one direction, in the arrangements
// that the library chooses. x, w and dy are in row-major order.
func (l *library) prepare(s conv.Shape, batch int, d Direction, x, w, dy []float32) (*peer, error) {
	shapes := [3][]int{{batch, s.C, s.H, s.W}, {s.O, s.C, s.KH, s.KW}, {batch, s.O, s.OutH(), s.OutW()}}
	if s.Groups > 1 {
		shapes[1] = []int{s.Groups, s.O / s.Groups, s.C / s.Groups, s.KH, s.KW}
	}
	var free, dense [3]uintptr
	var err error
	for i, n := range shapes {
		if free[i], err = l.array(true, n...); err != nil {
			return nil, err
		}
		if dense[i], err = l.array(false, n...); err != nil {
			return nil, err
		}
	}
	g := geometry{free[0], free[1], free[2], l.dims(s.StrideH, s.StrideW), l.dims(s.PadH, s.PadW)}
	pd, err := l.describe(Forward, g, 0)
	if err == nil && d != Forward {
		pd, err = l.describe(d, g, pd)
	}
	if err != nil {
		return nil, fmt.Errorf("%v of %v: %w", d, s, err)
	}
	p := &peer{l: l}
	name := new(*byte)
	if l.call("dnnl_primitive_desc_query", pd, queryImplementation, 0, at(name)) == 0 {
		p.name = cString(*name)
	}
	result := map[Direction]int{Forward: 2, BackwardData: 0, BackwardWeights: 1}[d]
	var args []argument
	for i, data := range [3][]float32{x, w, dy} {
		query, number := uintptr([3]int{querySrc, queryWei, queryDst}[i]), int32([3]int{argSrc, argWeights, argDst}[i])
		if d != Forward && (i == 2 || i == result) {
			query++
			number += argDiff
		}
		desc := l.call("dnnl_primitive_desc_query_md", pd, query, 0)
		m, err := l.memory(desc, allocate)
		if err != nil {
			return nil, err
		}
		args = append(args, argument{number, m})
		if i == result {
			p.out, p.desc, p.plain, p.size = m, desc, dense[i], len(data)
			continue
		}
		from, err := l.memory(dense[i], at(&data[0]))
		if err == nil {
			err = l.reorder(from, dense[i], m, desc)
		}
		if err != nil {
			return nil, err
		}
	}
	e, err := l.execution(pd, args...)
	if err != nil {
		return nil, err
	}
	p.run = e.run
	return p, nil
}

// result fetches what run computed, in row-major order.
func (p *peer) result() ([]float32, error) {
	out := make([]float32, p.size)
	m, err := p.l.memory(p.plain, at(&out[0]))
	if err == nil {
		err = p.l.reorder(p.out, p.desc, m, p.plain)
	}
	runtime.KeepAlive(out)
	return out, err
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
