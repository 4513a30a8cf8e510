package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

type header struct {
	tensors  []Tensor
	index    map[string]int
	metadata map[string]string
}

// parser walks the header token by token rather than decoding it into a map,
// because a map would hide a name that occurs twice.
type parser struct {
	file string
	dec  *json.Decoder
}

func parseHeader(file string, raw []byte) (*header, error) {
	p := &parser{file: file, dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return nil, p.fail("", errors.New(`the header does not begin with "{"`))
	case !utf8.Valid(raw):
		return nil, p.fail("", errors.New("the header is not UTF-8"))
	}
	h := &header{index: map[string]int{}}
	if err := p.object("", func(name string) error { return p.entry(h, name) }); err != nil {
		return nil, err
	}
	if len(bytes.Trim(raw[p.dec.InputOffset():], " ")) > 0 {
		return nil, p.fail("", errors.New("the header is followed by other than spaces"))
	}
	return h, nil
}

// entry reads the value of one key of the header.
func (p *parser) entry(h *header, name string) error {
	if name == metadataKey {
		if h.metadata != nil {
			return p.fail(name, errors.New("occurs twice"))
		}
		h.metadata = map[string]string{}
		return p.object(name, func(key string) error {
			if _, ok := h.metadata[key]; ok {
				return p.fail(name, fmt.Errorf("key %q occurs twice", key))
			}
			value, err := p.string(name, key)
			h.metadata[key] = value
			return err
		})
	}
	if _, ok := h.index[name]; ok {
		return p.fail(name, errors.New("the name occurs twice"))
	}
	t, err := p.tensor(name)
	if err != nil {
		return err
	}
	h.index[name] = len(h.tensors)
	h.tensors = append(h.tensors, t)
	return nil
}

// tensor reads dtype, shape and data_offsets, each exactly once.
func (p *parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var seen [3]bool
	err := p.object(name, func(key string) (err error) {
		var field int
		switch key {
		case "dtype":
			field = 0
			var s string
			if s, err = p.string(name, key); err == nil {
				t.DType = DType(s)
			}
		case "shape":
			field = 1
			t.Shape, err = p.ints(name, key, MaxRank)
		case "data_offsets":
			field = 2
			var o []int64
			if o, err = p.ints(name, key, 2); err == nil && len(o) != 2 {
				err = p.fail(name, fmt.Errorf("data_offsets has %d numbers, not 2", len(o)))
			}
			if err == nil {
				t.Begin, t.End = o[0], o[1]
			}
		default:
			return p.fail(name, fmt.Errorf("unknown field %q", key))
		}
		if err == nil && seen[field] {
			err = p.fail(name, fmt.Errorf("%s occurs twice", key))
		}
		seen[field] = true
		return err
	})
	if err == nil && seen != [3]bool{true, true, true} {
		err = p.fail(name, errors.New("dtype, shape or data_offsets is missing"))
	}
	return t, err
}

// object reads an object and calls value at each key, to read its value.
func (p *parser) object(name string, value func(key string) error) error {
	if err := p.delim(name, '{'); err != nil {
		return err
	}
	for p.dec.More() {
		tok, err := p.token(name)
		if err != nil {
			return err
		}
		if err := value(tok.(string)); err != nil { // the decoder admits only strings as keys
			return err
		}
	}
	return p.delim(name, '}')
}

// ints reads an array of at most limit whole numbers that are not negative.
func (p *parser) ints(name, field string, limit int) ([]int64, error) {
	if err := p.delim(name, '['); err != nil {
		return nil, err
	}
	out := []int64{}
	for p.dec.More() {
		tok, err := p.token(name)
		if err != nil {
			return nil, err
		}
		number, ok := tok.(json.Number)
		if !ok {
			return nil, p.fail(name, fmt.Errorf("%s holds %v, not a number", field, tok))
		}
		v, err := number.Int64()
		if err != nil || v < 0 {
			return nil, p.fail(name, fmt.Errorf("%s holds %s, not a whole number from 0 to 2^63−1", field, number))
		}
		if len(out) == limit {
			return nil, p.fail(name, fmt.Errorf("%s has more than %d numbers", field, limit))
		}
		out = append(out, v)
	}
	return out, p.delim(name, ']')
}

func (p *parser) string(name, field string) (string, error) {
	tok, err := p.token(name)
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", p.fail(name, fmt.Errorf("%s is %v, not a string", field, tok))
	}
	return s, nil
}

func (p *parser) delim(name string, want json.Delim) error {
	tok, err := p.token(name)
	if err == nil && tok != want {
		err = p.fail(name, fmt.Errorf("%v where %q belongs", tok, want.String()))
	}
	return err
}

func (p *parser) token(name string) (json.Token, error) {
	tok, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, p.fail(name, fmt.Errorf("the header is not JSON: %w", err))
	}
	return tok, nil
}

func (p *parser) fail(name string, err error) error {
	return &Error{File: p.file, Tensor: name, Err: err}
}
