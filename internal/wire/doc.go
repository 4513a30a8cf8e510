// Package wire is the frame of the data plane: how gradients, parameters and
// moving pieces look on a byte stream.
//
// A frame is a fixed little-endian header of [HeaderSize] bytes, then its row
// indices (int32), its values (float32) and a short text. The header's counts
// give the length of each part, so a reader knows from the first 128 bytes how
// much follows, allocates once, and lets the kernel fill the very memory that
// the numbers are used from: on little-endian machines values are never copied
// or converted, neither on the way out (the parts go out by one vectored write)
// nor in. Every address of an element is 64 bits wide: a block of an embedding
// table may well hold more than 2^32 elements.
//
// The header starts with a magic number and the format's version, so a
// connection from anything else is refused by its first bytes. The header and
// the body each carry a CRC32C (Castagnoli): TCP's own 16-bit sum lets damaged
// gradients through about once in 65,000 damaged segments, and a wrong number
// in a gradient is never noticed later. The body's may be left out where the
// stream does not leave the machine.
//
// The format, byte by byte: docs/formats/frame.md.
package wire
