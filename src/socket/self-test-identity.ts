/**
 * The certificate of the self-test's own listener on this machine. Nothing else trusts it; its key protects nothing.
 */
import type { TlsIdentity } from './tls.ts'

export const SELF_TEST_HOST = 'self-test.invalid'

export const SELF_TEST_IDENTITY: TlsIdentity = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgICEA4wCgYIKoZIzj0EAwIwHDEaMBgGA1UEAwwRc2VsZi10
ZXN0LmludmFsaWQwIBcNMjAwMTAxMDAwMDAwWhgPMjA1NjAxMDEwMDAwMDBaMBwx
GjAYBgNVBAMMEXNlbGYtdGVzdC5pbnZhbGlkMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEBFstkR2RrbepKGUmntohHz5hSUqSfq8BaILXx/VnosuFFSnBUo4sIwME
fK5glQ+E8aBNBUfFgxRxhCWrF2LI/6NNMEswHAYDVR0RBBUwE4IRc2VsZi10ZXN0
LmludmFsaWQwDAYDVR0TAQH/BAIwADAdBgNVHQ4EFgQUpSskn5r1haYGXQj3XtrA
ysPRyhgwCgYIKoZIzj0EAwIDSAAwRQIgIzKWQ/+/Wr1F1ZJS4UhUqw+YGwfykpK4
F3xm5boi2/YCIQDHWutJqTP4J7FeGVnPJZkM0RuRYAH8e+dQk/0gI13ifw==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDywkHW7ebGAmJ/tL
kDzdTklnNWkpcIzPJU/7adCF9I+hRANCAAQEWy2RHZGtt6koZSae2iEfPmFJSpJ+
rwFogtfH9Weiy4UVKcFSjiwjAwR8rmCVD4TxoE0FR8WDFHGEJasXYsj/
-----END PRIVATE KEY-----
`,
}
