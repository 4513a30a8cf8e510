package telemetry

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Config of a [Writer]. The zero value is useful.
type Config struct {
	// FlushEvery bounds how long a record may sit in the buffer; 0 means one
	// second.
	FlushEvery time.Duration
	// IDs keeps the example ids of steps. They cost some six bytes per example,
	// which is worth it only where exactly-once is to be checked.
	IDs bool
}

// Writer appends records to a stream as JSON lines. It buffers; a record reaches
// the stream within Config.FlushEvery, at Flush and at Close. Its methods may be
// called from several goroutines.
type Writer struct {
	cfg   Config
	mu    sync.Mutex
	buf   *bufio.Writer
	timer *time.Timer // pending flush; nil while the buffer is empty
	err   error       // the first failure: from then on nothing is written
}

// NewWriter returns a writer to w, which stays the caller's to close after
// [Writer.Close].
func NewWriter(w io.Writer, cfg Config) *Writer {
	if cfg.FlushEvery <= 0 {
		cfg.FlushEvery = time.Second
	}
	return &Writer{cfg: cfg, buf: bufio.NewWriterSize(w, 64<<10)}
}

// Write appends one record. After a failed write of the stream it returns that
// failure for ever: a gap in the middle of the file would look like lost steps.
func (w *Writer) Write(r Record) error {
	if s, ok := r.(Step); ok && !w.cfg.IDs {
		s.IDs = nil
		r = s
	}
	line, err := Encode(r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if _, err := w.buf.Write(append(line, '\n')); err != nil {
		return w.fail(err)
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.cfg.FlushEvery, func() { _ = w.Flush() })
	}
	return nil
}

// Flush passes everything buffered on to the stream.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// Close flushes and ends the writer; later writes fail.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flush()
	if w.err == nil {
		w.err = fmt.Errorf("write telemetry: %w", io.ErrClosedPipe)
	}
	return err
}

func (w *Writer) flush() error {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if w.err != nil {
		return w.err
	}
	if err := w.buf.Flush(); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) fail(err error) error {
	w.err = fmt.Errorf("write telemetry: %w", err)
	return w.err
}

// Encode returns a record's line, without its newline: the record's fields after
// "kind".
func Encode(r Record) ([]byte, error) {
	if u, ok := r.(Unknown); ok {
		return u.Line, nil
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode telemetry record %q: %w", r.Kind(), err)
	}
	line := append(make([]byte, 0, len(body)+24), `{"kind":"`...)
	line = append(line, r.Kind()...)
	line = append(line, '"')
	if len(body) > len("{}") {
		line = append(line, ',')
	}
	return append(line, body[1:]...), nil
}
