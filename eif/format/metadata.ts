// The metadata section, as `nitro-cli describe-eif` reads it: JSON with AWS's own member names. Not measured, so it
// says nothing that anybody should rely on, and nothing of when or where the image was built: two builds are the same
// bytes.

/** The time is the epoch: the section has to have one. */
const BUILD_TIME = '1970-01-01T00:00:00+00:00';

export function metadataOf(name: string, version: string): Buffer {
  const metadata = {
    ImageName: name,
    ImageVersion: version,
    BuildMetadata: {
      BuildTime: BUILD_TIME,
      BuildTool: 'strongroom eif',
      BuildToolVersion: version,
      OperatingSystem: 'Linux',
      KernelVersion: 'as pinned in pcrs.json',
    },
    DockerInfo: {},
    CustomMetadata: {},
  };
  return Buffer.from(JSON.stringify(metadata));
}
