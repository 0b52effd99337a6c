// What the configuration of an enclave's kernel has to say, whatever the fragments in eif/kernel say: a line that
// somebody deletes there is missed here.

export interface KernelArchitecture {
  readonly name: string;
  /** As the kernel calls it. */
  readonly kernelName: string;
  readonly needed: readonly string[];
  readonly mitigationThatIsOff: RegExp;
  /** Whether the option is not there because this machine's compiler, which is the host's, cannot do it. */
  compilerLacks(line: string, on: (line: string) => boolean): boolean;
}

export const NEEDED = [
  ...['VIRTIO_MMIO', 'VIRTIO_MMIO_CMDLINE_DEVICES', 'VSOCKETS', 'VIRTIO_VSOCKETS', 'NSM', 'HW_RANDOM'],
  ...[
    'SECCOMP_FILTER',
    'DEVTMPFS',
    'TMPFS',
    'PROC_FS',
    'SYSFS',
    'UNIX',
    'INET',
    'BLK_DEV_INITRD',
    'SERIAL_8250_CONSOLE',
  ],
  ...['CPU_MITIGATIONS', 'STRICT_KERNEL_RWX', 'STACKPROTECTOR_STRONG', 'VMAP_STACK', 'RANDOMIZE_BASE'],
  ...['RANDOMIZE_KSTACK_OFFSET_DEFAULT', 'HARDENED_USERCOPY', 'FORTIFY_SOURCE', 'INIT_ON_ALLOC_DEFAULT_ON'],
  ...['INIT_STACK_ALL_ZERO', 'SLAB_FREELIST_HARDENED', 'LIST_HARDENED'],
];

export const UNWANTED = [
  ...['MODULES', 'COREDUMP', 'IO_URING', 'BPF_SYSCALL', 'USERFAULTFD', 'KEXEC', 'KEXEC_FILE', 'HIBERNATION', 'SWAP'],
  ...['DEVMEM', 'PROC_KCORE', 'DEBUG_FS', 'KPROBES', 'USER_NS', 'IPV6', 'COMPAT', 'IA32_EMULATION'],
];

export const ARCHITECTURES: readonly KernelArchitecture[] = [
  {
    name: 'x86_64',
    kernelName: 'x86_64',
    needed: [
      ...['X86_X2APIC', 'KVM_GUEST', 'RANDOMIZE_MEMORY', 'CPU_SUP_INTEL', 'CPU_SUP_AMD'],
      ...['SPECTRE_V1', 'SPECTRE_V2', 'MDS', 'L1TF', 'SSB', 'RETPOLINE', 'PAGE_TABLE_ISOLATION'].map(
        (name) => `MITIGATION_${name}`,
      ),
    ],
    mitigationThatIsOff: /^# CONFIG_(MITIGATION_\w+) is not set$/,
    compilerLacks: () => false,
  },
  {
    name: 'aarch64',
    kernelName: 'arm64',
    needed: ['UNMAP_KERNEL_AT_EL0', 'MITIGATE_SPECTRE_BRANCH_HISTORY', 'ARM64_E0PD', 'ARM64_PTR_AUTH', 'ARM64_BTI'],
    mitigationThatIsOff: /^# CONFIG_(ARM64_ERRATUM_\d+|UNMAP_KERNEL_AT_EL0|MITIGATE_\w+) is not set$/,
    compilerLacks: (line, on) =>
      line === 'CONFIG_ARM64_PTR_AUTH_KERNEL=y' && !on('CONFIG_CC_HAS_BRANCH_PROT_PAC_RET=y'),
  },
];
