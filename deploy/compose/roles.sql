-- Once, when the database is made: a role that owns the schema, and one for the signers (docs/guides/postgres.md).
\set owner_password `cat /run/secrets/owner-password`
\set signer_password `cat /run/secrets/signer-password`
CREATE ROLE slashing_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE signer LOGIN PASSWORD :'signer_password';
CREATE DATABASE slashing OWNER slashing_owner;
REVOKE CONNECT ON DATABASE slashing FROM PUBLIC;
GRANT CONNECT ON DATABASE slashing TO signer;
