//go:build amd64 || arm64

package gemm

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"optimus/internal/level"
)

// library is OpenBLAS, loaded at run time and held to one thread.
type library struct {
	version, core string
	handle, sgemm uintptr
}

const soname = "libopenblas.so.0"

// openBLAS loads OpenBLAS with the kernels of its own choice, unless core names
// others. Its environment variables do not count. A processor newer than the library is
// unknown to it and gets kernels of 2004: then the best of those that the library
// has for the level take their place, because winning against the former says nothing.
func openBLAS(core, lvl string) (*library, error) {
	lib, err := load(core)
	if err != nil || core != "" || !slices.Contains([]string{"Generic", "Core2", "Prescott"}, lib.core) {
		return lib, err
	}
	better := map[string]string{level.AVX2: "Haswell", level.AVX512: "SkylakeX"}[lvl]
	if better == "" {
		return lib, nil
	}
	if err := lib.close(); err != nil {
		return nil, err
	}
	return load(better)
}

// close unloads the library, so that another call may choose other kernels.
func (l *library) close() error {
	if err := purego.Dlclose(l.handle); err != nil {
		return fmt.Errorf("unload OpenBLAS: %w", err)
	}
	return nil
}

// load loads the library with the kernels named, or of its own choice.
func load(core string) (*library, error) {
	defer setenv("OPENBLAS_CORETYPE", core)()
	defer setenv("OPENBLAS_L2_SIZE", "")()
	defer setenv("OPENBLAS_NUM_THREADS", "1")() // else it starts one for each core
	handle, err := purego.Dlopen(soname, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load OpenBLAS: %w; install it (on Debian: apt-get install libopenblas0-pthread)", err)
	}
	lib := &library{handle: handle}
	if err := lib.prepare(core); err != nil {
		return nil, errors.Join(fmt.Errorf("load OpenBLAS from %s: %w", soname, err), lib.close())
	}
	return lib, nil
}

// prepare finds the functions and holds the library to one thread.
func (l *library) prepare(core string) (err error) {
	var threads func(n int32)
	var config, corename func() string
	for name, into := range map[string]any{
		"openblas_set_num_threads": &threads, "openblas_get_config": &config, "openblas_get_corename": &corename,
	} {
		address, err := purego.Dlsym(l.handle, name)
		if err != nil {
			return err
		}
		purego.RegisterFunc(into, address)
	}
	if l.sgemm, err = purego.Dlsym(l.handle, "sgemm_"); err != nil {
		return err
	}
	threads(1)
	l.core = corename()
	l.version, _, _ = strings.Cut(strings.TrimPrefix(config(), "OpenBLAS "), " ")
	if core != "" && !strings.EqualFold(core, l.core) {
		return fmt.Errorf("asked for %s kernels it took %s; name some that it has and the processor can run", core, l.core)
	}
	return nil
}

// setenv sets a variable, or removes it if value is empty, and returns a
// function that puts it back. The library sees it because purego passes the
// environment on to C. Neither can fail with these names and values.
func setenv(name, value string) (restore func()) {
	old, had := os.LookupEnv(name)
	put := func(value string, have bool) {
		if have {
			os.Setenv(name, value)
		} else {
			os.Unsetenv(name)
		}
	}
	put(value, value != "")
	return func() { put(old, had) }
}

// product returns a call of sgemm_ for a shape. That is the Fortran interface,
// whose arguments are all pointers, so that the call costs a tenth of a
// microsecond; it works by columns, and the columns of Cᵀ = op(B)ᵀ·op(A)ᵀ are the
// rows of C. The operands stay as they are.
func (l *library) product(s Shape, a []float32, lda int, b []float32, ldb int, c []float32) func() {
	letter := map[bool]byte{false: 'N', true: 'T'}
	args := &struct {
		transA, transB         byte
		m, n, k, lda, ldb, ldc int32
		alpha, beta            float32
		a, b, c                *float32
	}{
		letter[s.TransA], letter[s.TransB], int32(s.M), int32(s.N), int32(s.K), int32(lda), int32(ldb), int32(s.N),
		1, 0, &a[0], &b[0], &c[0],
	}
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	return func() {
		purego.SyscallN(l.sgemm,
			at(unsafe.Pointer(&args.transB)), at(unsafe.Pointer(&args.transA)),
			at(unsafe.Pointer(&args.n)), at(unsafe.Pointer(&args.m)), at(unsafe.Pointer(&args.k)),
			at(unsafe.Pointer(&args.alpha)), at(unsafe.Pointer(args.b)), at(unsafe.Pointer(&args.ldb)),
			at(unsafe.Pointer(args.a)), at(unsafe.Pointer(&args.lda)),
			at(unsafe.Pointer(&args.beta)), at(unsafe.Pointer(args.c)), at(unsafe.Pointer(&args.ldc)))
		runtime.KeepAlive(args)
	}
}
