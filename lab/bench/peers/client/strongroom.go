// A signer of the remote signing API as a Go validator client asks it, with kept connections: strongroom over HTTPS
// with a client certificate, or over HTTP with a token, as it is asked beside a Web3Signer, which needs none.

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

type strongroom struct {
	url    string
	token  string
	client *http.Client
	keys   []string
}

func openStrongroom(o options) (*strongroom, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.Parallel, MaxConnsPerHost: o.Parallel}
	if strings.HasPrefix(o.URL, "https:") {
		var err error
		if transport.TLSClientConfig, err = mutualTLS(o); err != nil {
			return nil, err
		}
	}
	return &strongroom{url: o.URL, token: o.Token, client: &http.Client{Transport: transport}, keys: o.PublicKeys}, nil
}

func mutualTLS(o options) (*tls.Config, error) {
	authority, err := os.ReadFile(o.Authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", o.Authority)
	}
	pair, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}

func (s *strongroom) vote(ctx context.Context, key int, v vote) ([]byte, error) {
	return s.single(ctx, key, v.body())
}

func (s *strongroom) sign(ctx context.Context, key int, m plain) ([]byte, error) {
	return s.single(ctx, key, m.body)
}

func (s *strongroom) propose(ctx context.Context, key int, p proposal) ([]byte, error) {
	header := map[string]string{
		"slot": fmt.Sprint(p.slot), "proposer_index": "7",
		"parent_root": spelled(p.parent[:]), "state_root": spelled(p.state[:]), "body_root": spelled(p.body[:]),
	}
	return s.single(ctx, key, map[string]any{
		"type": "BLOCK_V2", "fork_info": forkInfo(),
		"beacon_block": map[string]any{"version": "FULU", "block_header": header},
	})
}

func (s *strongroom) votes(ctx context.Context, keys []int, v vote) ([][]byte, error) {
	identifiers := make([]string, len(keys))
	for i, key := range keys {
		identifiers[i] = s.keys[key]
	}
	var answers []struct {
		Identifier string `json:"identifier"`
		Signature  string `json:"signature"`
	}
	body := map[string]any{"identifiers": identifiers, "signing_request": v.body()}
	if err := s.post(ctx, "/api/v1/eth2/sign", body, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(keys) {
		return nil, fmt.Errorf("%d answers to %d keys", len(answers), len(keys))
	}
	signatures := make([][]byte, len(keys))
	for i, answer := range answers {
		if answer.Identifier != identifiers[i] {
			return nil, fmt.Errorf("answer %d is for another key", i)
		}
		var err error
		if signatures[i], err = signatureOf(answer.Signature); err != nil {
			return nil, err
		}
	}
	return signatures, nil
}

func (s *strongroom) single(ctx context.Context, key int, body any) ([]byte, error) {
	var answer struct {
		Signature string `json:"signature"`
	}
	if err := s.post(ctx, "/api/v1/eth2/sign/"+s.keys[key], body, &answer); err != nil {
		return nil, err
	}
	return signatureOf(answer.Signature)
}

func (s *strongroom) post(ctx context.Context, path string, body any, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %.200s", response.StatusCode, answer)
	}
	return json.Unmarshal(answer, into)
}

func (v vote) body() map[string]any {
	return map[string]any{
		"type": "ATTESTATION", "fork_info": forkInfo(),
		"attestation": map[string]any{
			"slot": fmt.Sprint(v.slot), "index": "0", "beacon_block_root": spelled(v.head[:]),
			"source": map[string]string{"epoch": fmt.Sprint(v.source), "root": spelled(v.checkpoint[:])},
			"target": map[string]string{"epoch": fmt.Sprint(v.target), "root": spelled(v.checkpoint[:])},
		},
	}
}

func forkInfo() map[string]any {
	return map[string]any{
		"fork": map[string]string{
			"previous_version": "0x05000000", "current_version": "0x06000000", "epoch": fmt.Sprint(fuluEpoch),
		},
		"genesis_validators_root": spelled(genesisValidatorsRoot[:]),
	}
}

func spelled(bytes []byte) string { return "0x" + hex.EncodeToString(bytes) }

func signatureOf(text string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(text, "0x"))
}

func mustRoot(text string) (made root) {
	bytes, err := hex.DecodeString(text)
	if err != nil || len(bytes) != len(made) {
		panic("not a root: " + text)
	}
	copy(made[:], bytes)
	return made
}
