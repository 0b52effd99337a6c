// Dirk as its own client library asks it: gRPC with a client certificate, the library's pool of connections. And the
// wallet that Dirk reads, written with the libraries that Dirk reads it with.

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	e2types "github.com/wealdtech/go-eth2-types/v2"
	dirkclient "github.com/wealdtech/go-eth2-wallet-dirk"
	keystorev4 "github.com/wealdtech/go-eth2-wallet-encryptor-keystorev4"
	nd "github.com/wealdtech/go-eth2-wallet-nd/v2"
	filesystem "github.com/wealdtech/go-eth2-wallet-store-filesystem"
	e2wtypes "github.com/wealdtech/go-eth2-wallet-types/v2"
)

const walletName = "peers"

// The keystores' cost is paid when Dirk opens them, before anything is measured; the library lowers it in tests only.
const costPower = 10

type dirk struct {
	accounts []e2wtypes.Account
}

func openDirk(ctx context.Context, o options) (*dirk, error) {
	credentials, err := dirkclient.ComposeCredentials(ctx, o.Certificate, o.Key, o.Authority)
	if err != nil {
		return nil, err
	}
	wallet, err := dirkclient.Open(ctx,
		dirkclient.WithName(walletName),
		dirkclient.WithCredentials(credentials),
		dirkclient.WithEndpoints([]*dirkclient.Endpoint{dirkclient.NewEndpoint("localhost", o.Port)}),
	)
	if err != nil {
		return nil, err
	}
	byKey := map[string]e2wtypes.Account{}
	for account := range wallet.Accounts(ctx) {
		byKey[spelled(account.PublicKey().Marshal())] = account
	}
	accounts := make([]e2wtypes.Account, len(o.PublicKeys))
	for i, key := range o.PublicKeys {
		if accounts[i] = byKey[key]; accounts[i] == nil {
			return nil, fmt.Errorf("Dirk lists %d accounts, and not %s", len(byKey), key)
		}
	}
	return &dirk{accounts: accounts}, nil
}

func (d *dirk) vote(ctx context.Context, key int, v vote) ([]byte, error) {
	signer, ok := d.accounts[key].(e2wtypes.AccountProtectingSigner)
	if !ok {
		return nil, fmt.Errorf("account %d signs no votes", key)
	}
	return marshalled(signer.SignBeaconAttestation(
		ctx, v.slot, 0, v.head[:], v.source, v.checkpoint[:], v.target, v.checkpoint[:], attesterDomain[:],
	))
}

func (d *dirk) propose(ctx context.Context, key int, p proposal) ([]byte, error) {
	signer, ok := d.accounts[key].(e2wtypes.AccountProtectingSigner)
	if !ok {
		return nil, fmt.Errorf("account %d signs no blocks", key)
	}
	return marshalled(signer.SignBeaconProposal(ctx, p.slot, 7, p.parent[:], p.state[:], p.body[:], proposerDomain[:]))
}

func (d *dirk) sign(ctx context.Context, key int, m plain) ([]byte, error) {
	signer, ok := d.accounts[key].(e2wtypes.AccountProtectingSigner)
	if !ok {
		return nil, fmt.Errorf("account %d signs nothing for a domain", key)
	}
	return marshalled(signer.SignGeneric(ctx, m.object[:], m.domain[:]))
}

func (d *dirk) votes(ctx context.Context, keys []int, v vote) ([][]byte, error) {
	accounts := make([]e2wtypes.Account, len(keys))
	for i, key := range keys {
		accounts[i] = d.accounts[key]
	}
	signer, ok := accounts[0].(e2wtypes.AccountProtectingMultiSigner)
	if !ok {
		return nil, fmt.Errorf("account %d signs no votes for many", keys[0])
	}
	committees := make([]uint64, len(keys))
	signed, err := signer.SignBeaconAttestations(
		ctx, v.slot, accounts, committees, v.head[:], v.source, v.checkpoint[:], v.target, v.checkpoint[:], attesterDomain[:],
	)
	if err != nil {
		return nil, err
	}
	if len(signed) != len(keys) {
		return nil, fmt.Errorf("%d answers to %d keys", len(signed), len(keys))
	}
	signatures := make([][]byte, len(keys))
	for i, signature := range signed {
		if signatures[i], err = marshalled(signature, nil); err != nil {
			return nil, err
		}
	}
	return signatures, nil
}

func marshalled(signature e2types.Signature, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if signature == nil {
		return nil, fmt.Errorf("no signature")
	}
	return signature.Marshal(), nil
}

func writeWallet(ctx context.Context, o options) error {
	store := filesystem.New(filesystem.WithLocation(o.Folder))
	encryptor := keystorev4.New(keystorev4.WithCost(&testing.T{}, costPower))
	wallet, err := nd.CreateWallet(ctx, walletName, store, encryptor)
	if err != nil {
		return err
	}
	if err := wallet.(e2wtypes.WalletLocker).Unlock(ctx, nil); err != nil {
		return err
	}
	for i, text := range o.Secrets {
		secret, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil {
			return fmt.Errorf("secret %d is no hex", i)
		}
		importer := wallet.(e2wtypes.WalletAccountImporter)
		if _, err := importer.ImportAccount(ctx, fmt.Sprintf("v%d", i), secret, []byte(o.Passphrase)); err != nil {
			return err
		}
	}
	return nil
}
