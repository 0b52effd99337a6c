-- At every start, after the schema was brought up to date: what a signer may do (docs/guides/postgres.md). It is run
-- by the administrator, because granting rights again to a role that has them changes nothing.
GRANT USAGE ON SCHEMA strongroom TO signer;
GRANT SELECT ON strongroom.schema_version, strongroom.binding TO signer;
GRANT SELECT, UPDATE ON strongroom.store TO signer;
GRANT SELECT, INSERT ON strongroom.validators TO signer;
GRANT UPDATE (highest_slot, highest_source_epoch, highest_target_epoch, low_water_slot, low_water_source_epoch,
              low_water_target_epoch, pruned_below_slot, pruned_below_target_epoch, tenure, blocks, attestations,
              digests, code) ON strongroom.validators TO signer;
GRANT SELECT, INSERT, DELETE ON strongroom.blocks, strongroom.attestations TO signer;
GRANT UPDATE (signing_root, code) ON strongroom.blocks, strongroom.attestations TO signer;
GRANT TEMPORARY ON DATABASE slashing TO signer;
