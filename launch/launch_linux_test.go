package launch_test

import (
	"os"
	"path/filepath"
	"testing"

	"optimus/launch"
)

// The kernel kills the children of a supervisor that is killed.
func TestChildrenDieWithSupervisor(t *testing.T) {
	n := newNest(t)
	supervisor, causes := n.begin("supervisor")
	met := map[string]int{}
	var dead []<-chan struct{}
	for range 3 {
		role, closed := n.meet()
		met[role]++
		dead = append(dead, closed)
	}
	if met["supervisor"] != 1 || met["waits"] != 2 {
		t.Fatalf("started: %v", met)
	}
	for _, d := range dead {
		select {
		case <-d:
			t.Fatal("one has ended too early")
		default:
		}
	}
	supervisor.Kill()
	receive(t, causes, "the supervisor's end")
	for _, d := range dead {
		receive(t, d, "a child to be killed")
	}
}

// Children that end, and those that cannot be started, leave no descriptor open.
func TestDescriptors(t *testing.T) {
	n := newNest(t)
	open := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		check(t, err)
		return len(list)
	}
	var before int
	for i := range 6 {
		if i == 1 { // the first child may have had the runtime open its own
			before = open()
		}
		p := launch.NewProcesses()
		_, causes := n.begin("brief")
		receive(t, causes, "the exit")
		if _, err := p.Start(filepath.Join(n.dir, "missing"), nil, nil, n.log(), nil); err == nil {
			t.Error("a program that is not there was started")
		}
		p.Close()
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors are open, were %d", after, before)
	}
}
