package main

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"optimus/spec"
	"optimus/train"
)

// every is the least time between two progress lines.
const every = 2 * time.Second

// progress shows how a job goes: a bar on a terminal that shows no log besides,
// else plain lines.
type progress struct {
	generated bool
	workload  string
	bars      *mpb.Progress
	bar       *mpb.Bar

	lines chan string   // to be written, so that a slow reader never holds the job up
	wrote chan struct{} // closed when all are

	mu      sync.Mutex
	last    spec.Status
	shown   time.Time
	named   bool
	unsaved string // why checkpoints are not written, without its numbers; empty if they are
	saved   string // the last checkpoint before that
}

func newProgress(w io.Writer, j spec.TrainingJob, logged bool) *progress {
	p := &progress{generated: j.Data == "", workload: j.Workload,
		lines: make(chan string, 64), wrote: make(chan struct{})}
	go func() {
		defer close(p.wrote)
		for text := range p.lines {
			fmt.Fprint(w, text)
		}
	}()
	if !logged && redraws(w) {
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(150*time.Millisecond))
	}
	return p
}

// redraws reports whether w is a terminal that can draw a line again.
func redraws(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}

// show takes a status; it is called after every step and returns at once.
func (p *progress) show(s spec.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := s.State != p.last.State || s.Servers != p.last.Servers || s.Workers != p.last.Workers
	p.last = s
	if !p.named && s.Job != "" {
		p.named = true
		text := fmt.Sprintf("job %s; rescale it with: optimus rescale %s --servers P --workers W\n", s.Job, s.Job)
		if p.generated {
			text = fmt.Sprintf("no --data given: training %s on a generated set of the same shape, whose labels can be learned\n", p.workload) + text
		}
		for _, note := range s.Notes {
			text += "warning: " + note + "\n"
		}
		p.write(text)
		if p.bars != nil {
			p.bar = p.bars.AddBar(0, mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return p.left() })),
				mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.right() })))
		}
	}
	if text := p.saving(s); text != "" {
		p.write(text + "\n")
	}
	if p.bar != nil {
		p.bar.SetTotal(int64(s.Steps), false)
		p.bar.SetCurrent(int64(s.Step))
		return
	}
	if now := time.Now(); changed || s.State.Final() || now.Sub(p.shown) >= every {
		p.shown = now
		p.write(line(s) + "\n")
	}
}

// saving tells of a checkpoint that was not written, once until the cause is
// another one or a checkpoint is written again.
func (p *progress) saving(s spec.Status) string {
	why, failed := strings.CutPrefix(s.Reason, train.NotSaved)
	cause := strings.Map(func(r rune) rune { // numbers of steps and bytes make no other cause
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, why)
	switch {
	case failed && cause != p.unsaved:
		p.unsaved, p.saved = cause, s.LastCheckpoint
		return "warning: " + s.Reason
	case !failed && p.unsaved != "" && s.LastCheckpoint != p.saved:
		p.unsaved = ""
		return "checkpoints are written again: " + s.LastCheckpoint
	}
	return ""
}

// write shows lines above the bar, if there is one. It leaves them out when too
// many wait already.
func (p *progress) write(text string) {
	if p.bars != nil {
		fmt.Fprint(p.bars, text)
		return
	}
	select {
	case p.lines <- text:
	default:
	}
}

// line is a status in one line.
func line(s spec.Status) string { return steps(s) + " " + figures(s) }

func steps(s spec.Status) string {
	if s.Steps == 0 { // it ends with its epochs
		return fmt.Sprintf("step %d", s.Step)
	}
	return fmt.Sprintf("step %d/%d", s.Step, s.Steps)
}

func figures(s spec.Status) string {
	text := fmt.Sprintf("epoch %.1f", s.Epoch)
	if s.Epochs > 0 && s.Epochs < math.MaxInt32 {
		text += fmt.Sprintf("/%d", s.Epochs)
	}
	if s.ExamplesPerS > 0 {
		text += fmt.Sprintf(" loss %.4f", float64(s.Loss))
	}
	if s.Metric != nil {
		text += fmt.Sprintf(" %s %.4f", s.Metric.Name, float64(s.Metric.Value))
	}
	text += fmt.Sprintf(" (%d,%d)", s.Servers, s.Workers)
	if s.ExamplesPerS > 0 {
		text += fmt.Sprintf(" %.0f examples/s", float64(s.ExamplesPerS))
		if s.ETAS > 0 {
			text += " ETA " + humanETA(s.ETAS)
		}
	}
	if s.State != spec.Running {
		text += " " + string(s.State)
		if s.Reason != "" {
			text += ": " + shortened(s.Reason)
		}
	}
	return text
}

// shortened bounds a reason, which may name thousands of members.
func shortened(reason string) string {
	const most = 120
	if r := []rune(reason); len(r) > most {
		return string(r[:most]) + " …"
	}
	return reason
}

func (p *progress) left() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return steps(p.last) + " "
}

func (p *progress) right() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return " " + figures(p.last)
}

func (p *progress) close() {
	close(p.lines)
	<-p.wrote
	if p.bar != nil {
		p.bar.Abort(false)
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}

// logger writes a log for people to w.
func logger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
