package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// MaxMembers bounds the servers, and the workers, of one job.
const MaxMembers = 4096

// Count says how many members of a role a job starts with and between which
// bounds a rescale, by command or by the scheduler, may move. A zero Min means
// 1, a zero Max means MaxMembers.
type Count struct {
	Count int `json:"count"`
	Min   int `json:"min,omitempty"`
	Max   int `json:"max,omitempty"`
}

// ParseRange reads "N" (start with N, no bounds) or "MIN:MAX" (start with MIN,
// stay between them). The error names the text and the forms.
func ParseRange(s string) (Count, error) {
	lo, hi, ranged := strings.Cut(s, ":")
	first, err := parseCount(lo)
	if err != nil {
		return Count{}, &FieldError{Field: "count", Value: s, Allowed: countForms}
	}
	if !ranged {
		return Count{Count: first}, nil
	}
	last, err := parseCount(hi)
	if err != nil || last < first {
		return Count{}, &FieldError{Field: "count", Value: s, Allowed: countForms}
	}
	return Count{Count: first, Min: first, Max: last}, nil
}

var countForms = fmt.Sprintf("N or MIN:MAX with 1 <= MIN <= MAX <= %d", MaxMembers)

func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31) // unsigned: takes neither + nor -
	if err != nil || n < 1 || n > MaxMembers {
		return 0, fmt.Errorf("count %q", s)
	}
	return int(n), nil
}

// Bounds returns the lowest and highest count that a rescale may choose.
func (c Count) Bounds() (lo, hi int) {
	lo, hi = 1, MaxMembers
	if c.Min > 0 {
		lo = c.Min
	}
	if c.Max > 0 {
		hi = c.Max
	}
	return lo, hi
}

// Allows reports whether a rescale may choose n members.
func (c Count) Allows(n int) bool {
	lo, hi := c.Bounds()
	return lo <= n && n <= hi
}

// String is the inverse of ParseRange where the count is the minimum, and
// "N of MIN:MAX" elsewhere.
func (c Count) String() string {
	if c.Min == 0 && c.Max == 0 {
		return strconv.Itoa(c.Count)
	}
	lo, hi := c.Bounds()
	if c.Count == lo {
		return fmt.Sprintf("%d:%d", lo, hi)
	}
	return fmt.Sprintf("%d of %d:%d", c.Count, lo, hi)
}

// UnmarshalJSON reads 3, "3", "2:8" or {"count":3,"min":2,"max":8}; an object
// without a count starts with its minimum.
func (c *Count) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' {
		s := string(b)
		if len(b) > 0 && b[0] == '"' {
			if err := json.Unmarshal(b, &s); err != nil {
				return err
			}
		}
		parsed, err := ParseRange(s)
		*c = parsed
		return err
	}
	type plain Count // without this method
	var p plain
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return err
	}
	if p.Count == 0 {
		p.Count = p.Min
	}
	*c = Count(p)
	return nil
}

// Set and Type, with String, make a Count a command-line flag value.
func (c *Count) Set(s string) error {
	parsed, err := ParseRange(s)
	if err == nil {
		*c = parsed
	}
	return err
}

// Type names the form of the value in help texts.
func (c *Count) Type() string { return "N|MIN:MAX" }
