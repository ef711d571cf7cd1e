// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// bbolt keeps sums of its meta pages only, so each value carries its own: the
// CRC-32C of the key's length, key and value, before the value. With the key in
// it, a value cannot come back under another name, and with the length no part
// of one passes for part of the other.
const sealSize = crc32.Size

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(key, value []byte) uint32 {
	head := append(binary.BigEndian.AppendUint32(nil, uint32(len(key))), key...)
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, value)
}

func seal(key, value []byte) []byte {
	sealed := binary.BigEndian.AppendUint32(make([]byte, 0, sealSize+len(value)), sum(key, value))
	return append(sealed, value...)
}

func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < sealSize {
		return nil, errors.New("value without checksum")
	}
	value := sealed[sealSize:]
	if binary.BigEndian.Uint32(sealed) != sum(key, value) {
		return nil, errors.New("checksum mismatch")
	}
	return value, nil
}
