package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// Random bytes are read from the system in pieces of 4 KB: one call for many identifiers.
var random = bufio.NewReaderSize(rand.Reader, 4096)
var randomLock sync.Mutex

func uuid4() string {
	bytes := randomBytes()
	bytes[6] = bytes[6]&0x0f | 0x40
	return textOf(bytes)
}

// uuid7 is ordered by its time, as RFC 9562 has it.
func uuid7() string {
	bytes := randomBytes()
	now := time.Now().UnixMilli()
	for index := 5; index >= 0; index-- {
		bytes[index] = byte(now)
		now >>= 8
	}
	bytes[6] = bytes[6]&0x0f | 0x70
	return textOf(bytes)
}

func randomBytes() (bytes [16]byte) {
	randomLock.Lock()
	defer randomLock.Unlock()
	_, _ = random.Read(bytes[:])
	return bytes
}

func textOf(bytes [16]byte) string {
	bytes[8] = bytes[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[0:8], bytes[0:4])
	hex.Encode(text[9:13], bytes[4:6])
	hex.Encode(text[14:18], bytes[6:8])
	hex.Encode(text[19:23], bytes[8:10])
	hex.Encode(text[24:36], bytes[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
