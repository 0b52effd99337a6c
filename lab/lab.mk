# What measures and judges, and ships in nothing (docs/architecture.md).
.PHONY: bench bench-floods bench-pair bench-timing bench-ethereum bench-peers bench-distributed soak conformance site

SLOW_OF_LAB := lab/test/conformance/kit.test.ts

bench: install core ## Measure the signing path beside raw BLS signing, as ratios of one run
	@$(NODE) lab/bench/signing.ts

bench-floods: install core ## Measure what each kind of flood (or FLOOD=…) does to clients with a good token, in one run
	@$(NODE) lab/bench/floods.ts '$(FLOOD)'

bench-pair: install core ## Measure this signer beside OTHER=…, an earlier bin/strongroom, in turns; ROUNDS=… (10)
	@$(NODE) lab/bench/pair.ts --other '$(OTHER)' $(if $(ROUNDS),--rounds $(ROUNDS))

bench-timing: install core ## Look for what the time of an answer tells, over REQUESTS=… (100000) for each pair
	@$(NODE) lab/bench/timing.ts '$(REQUESTS)'

bench-ethereum: install core ## Vote as all of Ethereum, slot after slot: KEYS=… (1000000), SLOTS=… (10)
	@$(NODE) lab/bench/ethereum/main.ts $(if $(KEYS),--keys $(KEYS)) $(if $(SLOTS),--slots $(SLOTS)) $(if $(MODE),--mode $(MODE))

bench-peers: install core ## Measure beside Dirk, or WEB3SIGNER=URL with STORE=pid; KEYS=… (1000), ROUNDS=… (6), Go
	@$(NODE) lab/bench/peers/main.ts $(if $(KEYS),--keys $(KEYS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	  $(if $(ONLY),--only '$(ONLY)') $(if $(WEB3SIGNER),--web3signer '$(WEB3SIGNER)' --web3signer-store '$(STORE)')

bench-distributed: install core ## Measure 3 of 4 participants beside one signer: KEYS=… (1000), ROUNDS=… (6)
	@$(NODE) lab/bench/distributed.ts $(if $(KEYS),--keys $(KEYS)) $(if $(ROUNDS),--rounds $(ROUNDS))

soak: install core ## Load signers over all backends for MINUTES=… (30): chart in build/soak.svg, and whether it is flat
	@$(NODE) $(if $(JUDGE),lab/bench/soak-judge.ts $(JUDGE),lab/bench/soak.ts '$(MINUTES)' '$(BURST_MS)')

conformance: install ## Ask the remote signer at URL=… what it has to answer; FILE=… says its network and keys
	@$(NODE) lab/conformance/main.ts --url '$(URL)' $(if $(FILE),--file '$(FILE)')

site: install ## Make the documentation as a site, searchable and offline, into build/site; SERVE=1 shows it
	@$(NODE) lab/site/main.ts $(if $(SERVE),serve)
