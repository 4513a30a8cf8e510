package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// HeaderSize is the number of bytes of an encoded header.
const HeaderSize = 128

// Version is the version of the format that this package reads and writes.
const Version = 1

// DefaultMaxFrame is the largest frame, in bytes, unless configured otherwise.
const DefaultMaxFrame = 1 << 30

// MaxText is the longest text of a frame in bytes.
const MaxText = 1<<16 - 1

// The ways in which a frame can be refused. Errors of this package wrap one of
// them or the error of the underlying stream.
var (
	ErrMagic    = errors.New("this is not an optimus data connection")
	ErrVersion  = errors.New("the peer speaks another version of the frame format")
	ErrTooLarge = errors.New("frame larger than MaxFrame")
	ErrChecksum = errors.New("checksum does not match: the frame was damaged on its way")
	ErrInvalid  = errors.New("invalid frame")
)

const magic = "optm"

// Where each field lies in the header. Eight-byte fields lie on multiples of 8.
const (
	atMagic       = 0
	atVersion     = 4
	atKind        = 5
	atFlags       = 6
	atOutcome     = 7
	atRole        = 8
	atSlots       = 9
	atTextLen     = 10
	atBlock       = 12
	atGeneration  = 16
	atFrom        = 20
	atRun         = 24
	atIncarnation = 32
	atRequest     = 40
	atStep        = 48
	atSequence    = 56
	atOffset      = 64
	atSize        = 72
	atWeight      = 80
	atUpdates     = 88
	atDigest      = 96
	atRows        = 104
	atValues      = 112
	atBodySum     = 120
	atHeaderSum   = 124
)

// extent holds the lengths of a frame's parts and the checksum over them.
type extent struct {
	rows, values uint64 // elements
	text         uint16 // bytes
	sum          uint32 // CRC32C of rows, values and text, as sent; noSum for none
}

// length returns the bytes of the whole frame, or false where that is more than
// max. The counts may be anything a damaged or hostile header holds.
func (e extent) length(max int64) (int64, bool) {
	limit := uint64(max)
	if e.rows > limit/4 || e.values > limit/4 {
		return 0, false
	}
	n := HeaderSize + 4*(e.rows+e.values) + uint64(e.text) // no overflow: each count is below 2^61
	return int64(n), n <= limit
}

// sumTable is the polynomial of all checksums here. MakeTable caches it.
func sumTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// noSum in the place of a body's checksum says that there is none, as in UDP.
const noSum = 0

// sent returns a checksum as it is sent: never noSum.
func sent(sum uint32) uint32 {
	if sum == noSum {
		return ^uint32(noSum)
	}
	return sum
}

// putHeader encodes a header into b.
func putHeader(b *[HeaderSize]byte, h *Header, e extent) {
	le := binary.LittleEndian
	copy(b[atMagic:], magic)
	b[atVersion] = Version
	b[atKind], b[atFlags], b[atOutcome] = byte(h.Kind), h.Flags, h.Outcome
	b[atRole], b[atSlots] = h.Role, h.Slots
	le.PutUint16(b[atTextLen:], e.text)
	le.PutUint32(b[atBlock:], h.Block)
	le.PutUint32(b[atGeneration:], h.Generation)
	le.PutUint32(b[atFrom:], h.From)
	le.PutUint64(b[atRun:], h.Run)
	le.PutUint64(b[atIncarnation:], h.Incarnation)
	le.PutUint64(b[atRequest:], h.Request)
	le.PutUint64(b[atStep:], uint64(h.Step))
	le.PutUint64(b[atSequence:], uint64(h.Sequence))
	le.PutUint64(b[atOffset:], h.Offset)
	le.PutUint64(b[atSize:], h.Size)
	le.PutUint64(b[atWeight:], uint64(h.Weight))
	le.PutUint64(b[atUpdates:], uint64(h.Updates))
	le.PutUint64(b[atDigest:], h.Digest)
	le.PutUint64(b[atRows:], e.rows)
	le.PutUint64(b[atValues:], e.values)
	le.PutUint32(b[atBodySum:], e.sum)
	le.PutUint32(b[atHeaderSum:], crc32.Checksum(b[:atHeaderSum], sumTable()))
}

// parseHeader decodes a header whose magic and version were checked.
func parseHeader(b *[HeaderSize]byte) (h Header, e extent, err error) {
	le := binary.LittleEndian
	if crc32.Checksum(b[:atHeaderSum], sumTable()) != le.Uint32(b[atHeaderSum:]) {
		return h, e, fmt.Errorf("header: %w", ErrChecksum)
	}
	h = Header{
		Kind:        Kind(b[atKind]),
		Flags:       b[atFlags],
		Outcome:     b[atOutcome],
		Role:        b[atRole],
		Slots:       b[atSlots],
		Run:         le.Uint64(b[atRun:]),
		Generation:  le.Uint32(b[atGeneration:]),
		From:        le.Uint32(b[atFrom:]),
		Incarnation: le.Uint64(b[atIncarnation:]),
		Request:     le.Uint64(b[atRequest:]),
		Step:        int64(le.Uint64(b[atStep:])),
		Sequence:    int64(le.Uint64(b[atSequence:])),
		Block:       le.Uint32(b[atBlock:]),
		Offset:      le.Uint64(b[atOffset:]),
		Size:        le.Uint64(b[atSize:]),
		Weight:      int64(le.Uint64(b[atWeight:])),
		Updates:     int64(le.Uint64(b[atUpdates:])),
		Digest:      le.Uint64(b[atDigest:]),
	}
	e = extent{
		rows:   le.Uint64(b[atRows:]),
		values: le.Uint64(b[atValues:]),
		text:   le.Uint16(b[atTextLen:]),
		sum:    le.Uint32(b[atBodySum:]),
	}
	if h.Kind < Hello || h.Kind > last {
		return h, e, fmt.Errorf("%w: unknown %s", ErrInvalid, h.Kind)
	}
	return h, e, nil
}

// checkStart refuses a stream that does not begin like a frame of this version.
func checkStart(b []byte) error {
	if string(b[:atVersion]) != magic {
		return fmt.Errorf("%w: it begins with %q", ErrMagic, b[:atVersion])
	}
	if v := b[atVersion]; v != Version {
		return fmt.Errorf("%w: it has version %d, this program version %d; run the same program everywhere", ErrVersion, v, Version)
	}
	return nil
}
