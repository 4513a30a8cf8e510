package checkpoint

// Seal makes the manifest's file of its bytes.
func Seal(body []byte) []byte { return seal(body) }

// Reseal makes a changed file consistent again.
func Reseal(file []byte) []byte {
	return seal(file[len(sealOpen)+64+len(sealMiddle) : len(file)-len(sealClose)])
}
