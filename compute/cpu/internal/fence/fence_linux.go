package fence

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// New returns memory for n arrays until the test ends.
func New(t testing.TB, n int) Arrays {
	t.Helper()
	page := os.Getpagesize()
	f := make(Arrays, n)
	for i := range f {
		mem, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Munmap(mem); err != nil {
				t.Error(err)
			}
		})
		for _, guard := range [][]byte{mem[:page], mem[(pages+1)*page:]} {
			if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
				t.Fatal(err)
			}
		}
		f[i] = unsafe.Slice((*float32)(unsafe.Pointer(&mem[page])), pages*page/4)
	}
	return f
}
