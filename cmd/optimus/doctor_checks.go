package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"optimus/internal/level"
	"optimus/internal/rundir"
)

func checkCores(context.Context) check {
	n, used := runtime.NumCPU(), runtime.GOMAXPROCS(0)
	if used < n {
		return warn("raise GOMAXPROCS or the container's processor quota to use all", "%d cores, %d used", n, used)
	}
	return ok("%d", n)
}

func checkLevel(context.Context) check {
	now, err := level.Current()
	present := level.Present()
	switch {
	case err != nil:
		return fail("unset "+level.Env+" or set it to a level that this processor has", err)
	case now != present[len(present)-1]:
		return warn("unset "+level.Env+" to use it", "%s, though the processor has %s", now, present[len(present)-1])
	case now == level.Plain:
		return warn("expect several times the run time; use a processor with AVX2", "%s: no vector kernels for this processor", now)
	}
	return ok("%s", now)
}

// checkMemory takes the lower of what the machine has available and what the
// container may use.
func checkMemory(context.Context) check {
	const want = 1 << 30
	free, err := memAvailable()
	if err != nil {
		return warn("check by hand that a few GiB are free", "not known: %v", err)
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			free = min(free, limit)
		}
	}
	if free < want {
		return warn("stop other programs or raise the container's limit; large models need more", "%s available", humanBytes(free))
	}
	return ok("%s available", humanBytes(free))
}

// memAvailable reads the kernel's estimate of memory that programs can get.
func memAvailable() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "MemAvailable:"); found {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// checkOpenFiles reads the limit that this process has: Go raises the soft
// limit to the hard one at start.
func checkOpenFiles(context.Context) check {
	const want = 1024
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return warn("", "not known: %v", err)
	}
	if limit.Cur < want {
		return warn(fmt.Sprintf("raise it: ulimit -n %d; each member needs several sockets", want), "at most %d", limit.Cur)
	}
	return ok("at most %d", limit.Cur)
}

// checkFolder writes a file as checkpoints are written: temporary name, fsync,
// rename, fsync of the folder.
func checkFolder(jobs string) check {
	err := os.MkdirAll(jobs, 0o755)
	if err == nil {
		err = saveIn(jobs)
	}
	if err != nil {
		return fail("set XDG_STATE_HOME to a folder on a local disk that you may write", err)
	}
	return ok("%s is writable, fsync works", jobs)
}

func saveIn(folder string) error {
	dir, err := os.MkdirTemp(folder, ".doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "new"))
	if err != nil {
		return err
	}
	_, err = f.WriteString("optimus")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, "saved")); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func checkDisk(jobs string) check {
	const want, need = 2 << 30, 64 << 20
	const do = "free some, or set XDG_STATE_HOME to a larger disk; a checkpoint has three times the parameters' bytes"
	var fs unix.Statfs_t
	if err := unix.Statfs(jobs, &fs); err != nil {
		return fail(do, fmt.Errorf("free space of %s: %w", jobs, err))
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	switch {
	case free < need:
		return fail(do, fmt.Errorf("%s free in %s", humanBytes(free), jobs))
	case free < want:
		return warn(do, "%s free in %s", humanBytes(free), jobs)
	}
	return ok("%s free in %s", humanBytes(free), jobs)
}

func checkTCP(ctx context.Context, network, address string) check {
	if err := exchange(ctx, network, address); err != nil {
		return fail("allow loopback connections, or run without --launch process", err)
	}
	return ok("bytes went both ways")
}

// checkUnix uses the folder in which jobs have their control sockets.
func checkUnix(ctx context.Context, jobs string) check {
	const do = "set TMPDIR to a folder with a short path on a local disk; status and rescale need such sockets"
	mine := rundir.Dir{Path: filepath.Join(jobs, fmt.Sprintf(".doctor-%d", os.Getpid()))}
	path, err := mine.Socket()
	if err == nil {
		err = exchange(ctx, "unix", path)
	}
	if err != nil {
		return fail(do, err)
	}
	return ok("bytes went both ways in %s", filepath.Dir(path))
}

// exchange listens on address, connects to it and sends bytes both ways.
func exchange(ctx context.Context, network, address string) error {
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return err
	}
	defer l.Close()
	deadline, limited := ctx.Deadline()
	limit := func(c net.Conn, err error) (io.ReadWriteCloser, error) {
		if err != nil {
			return nil, err
		}
		if limited {
			err = c.SetDeadline(deadline)
		}
		return c, err
	}
	accept := func() (io.ReadWriteCloser, error) { return limit(l.Accept()) }
	dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
		return limit(new(net.Dialer).DialContext(ctx, network, l.Addr().String()))
	}
	return echo(ctx, accept, dial)
}

// checkChild starts this program again, as --launch process does.
func checkChild(ctx context.Context) check {
	const do = "allow this program to start processes, or run without --launch process"
	self, err := os.Executable()
	if err != nil {
		return fail(do, err)
	}
	c := exec.CommandContext(ctx, self, "--version")
	c.Args[0] = os.Args[0]
	out, err := c.Output()
	switch {
	case err != nil:
		return fail(do, fmt.Errorf("start %s: %w", self, err))
	case !bytes.HasPrefix(out, []byte("optimus ")):
		return fail(do, fmt.Errorf("start %s: it printed %q", self, out))
	}
	return ok("started and ended one")
}
