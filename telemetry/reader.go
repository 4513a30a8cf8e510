package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Read returns all records of a stream in order. A last line without its newline
// that does not decode is what a killed process leaves and is dropped; any other
// line that does not decode is an error with its number, and the records before
// it are returned too. Empty lines are passed over.
func Read(r io.Reader) ([]Record, error) {
	var records []Record
	buf := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		line, err := buf.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return records, fmt.Errorf("read telemetry line %d: %w", number, err)
		}
		torn := err != nil // the stream ended before the line did
		if line = bytes.TrimSpace(line); len(line) > 0 {
			record, err := Decode(line)
			switch {
			case err == nil:
				records = append(records, record)
			case !torn:
				return records, fmt.Errorf("read telemetry line %d: %w", number, err)
			}
		}
		if torn {
			return records, nil
		}
	}
}

// Decode reads one line.
func Decode(line []byte) (Record, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	switch head.Kind {
	case "":
		return nil, errors.New(`the record has no "kind"`)
	case Step{}.Kind():
		return decode[Step](line)
	case Evaluation{}.Kind():
		return decode[Evaluation](line)
	case GenerationStart{}.Kind():
		return decode[GenerationStart](line)
	case Transition{}.Kind():
		return decode[Transition](line)
	case Checkpoint{}.Kind():
		return decode[Checkpoint](line)
	case Lost{}.Kind():
		return decode[Lost](line)
	case Skipped{}.Kind():
		return decode[Skipped](line)
	case Staleness{}.Kind():
		return decode[Staleness](line)
	case End{}.Kind():
		return decode[End](line)
	}
	return Unknown{Name: head.Kind, Line: bytes.Clone(line)}, nil
}

func decode[T Record](line []byte) (Record, error) {
	var r T
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	return r, nil
}
