// The messages of a load, and the roots that their signatures have to be over. Computed here, from SHA-256 alone, so
// that neither signer is asked whether a signature is right.

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

type root = [32]byte

// Mainnet: fulu is current from this epoch on.
const fuluEpoch = 411392

var (
	genesisValidatorsRoot = mustRoot("4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95")
	fuluVersion           = [4]byte{6}
	attesterDomain        = domainOf([4]byte{1})
	proposerDomain        = domainOf([4]byte{0})
	selectionDomain       = domainOf([4]byte{5})
	randaoDomain          = domainOf([4]byte{2})
	// Of the genesis fork and no chain (builder-specs).
	builderDomain = domainOver([4]byte{0, 0, 0, 1}, [4]byte{}, root{})
)

type vote struct {
	slot, source, target uint64
	head, checkpoint     root
}

type proposal struct {
	slot                uint64
	parent, state, body root
}

// A message that needs no record of what was signed before: what is signed, as an object's root, and its JSON.
type plain struct {
	object, domain root
	body           map[string]any
}

// Every key votes once an epoch, so that nothing is a repeat. `group` is what decides the head.
func voteOf(epoch uint64, group uint64) vote {
	return vote{slot: epoch * 32, source: epoch - 1, target: epoch, head: numbered(1, group), checkpoint: numbered(2, 0)}
}

func proposalOf(slot uint64) proposal {
	return proposal{slot: slot, parent: numbered(3, slot), state: numbered(4, slot), body: numbered(5, slot)}
}

func randaoOf(epoch uint64) plain {
	return plain{object: number(epoch), domain: randaoDomain, body: map[string]any{
		"type": "RANDAO_REVEAL", "fork_info": forkInfo(),
		"randao_reveal": map[string]string{"epoch": fmt.Sprint(epoch)},
	}}
}

// What most clients ask most: one slot, and so one root, for all keys.
func selectionOf(slot uint64) plain {
	return plain{object: number(slot), domain: selectionDomain, body: map[string]any{
		"type": "AGGREGATION_SLOT", "fork_info": forkInfo(),
		"aggregation_slot": map[string]string{"slot": fmt.Sprint(slot)},
	}}
}

func registrationOf(publicKey string, timestamp uint64) plain {
	key, err := hex.DecodeString(publicKey[2:])
	if err != nil {
		panic("not a key: " + publicKey)
	}
	const gasLimit = 60_000_000
	feeRecipient, head, rest := root{7}, root{}, root{}
	copy(head[:], key[:32])
	copy(rest[:], key[32:])
	object := merkle(feeRecipient, number(gasLimit), number(timestamp), merkle(head, rest))
	return plain{object: object, domain: builderDomain, body: map[string]any{
		"type": "VALIDATOR_REGISTRATION",
		"validator_registration": map[string]string{
			"fee_recipient": spelled(feeRecipient[:20]), "gas_limit": fmt.Sprint(gasLimit),
			"timestamp": fmt.Sprint(timestamp), "pubkey": publicKey,
		},
	}}
}

func (m plain) signingRoot() root { return merkle(m.object, m.domain) }

func (v vote) signingRoot() root {
	source := merkle(number(v.source), v.checkpoint)
	target := merkle(number(v.target), v.checkpoint)
	return merkle(merkle(number(v.slot), number(0), v.head, source, target), attesterDomain)
}

func (p proposal) signingRoot() root {
	return merkle(merkle(number(p.slot), number(7), p.parent, p.state, p.body), proposerDomain)
}

func domainOf(kind [4]byte) root { return domainOver(kind, fuluVersion, genesisValidatorsRoot) }

func domainOver(kind, forkVersion [4]byte, genesis root) root {
	var version root
	copy(version[:], forkVersion[:])
	forkData := merkle(version, genesis)
	var domain root
	copy(domain[:4], kind[:])
	copy(domain[4:], forkData[:28])
	return domain
}

// The root of a container whose fields have these roots.
func merkle(leaves ...root) root {
	for len(leaves) > 1 && len(leaves)&(len(leaves)-1) != 0 {
		leaves = append(leaves, root{})
	}
	for len(leaves) > 1 {
		next := make([]root, len(leaves)/2)
		for i := range next {
			next[i] = sha256.Sum256(append(leaves[2*i][:], leaves[2*i+1][:]...))
		}
		leaves = next
	}
	return leaves[0]
}

func number(value uint64) (leaf root) {
	binary.LittleEndian.PutUint64(leaf[:], value)
	return leaf
}

func numbered(kind byte, value uint64) (made root) {
	made[0] = kind
	binary.BigEndian.PutUint64(made[24:], value)
	return made
}
