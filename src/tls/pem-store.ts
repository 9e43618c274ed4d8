/** PEM files: certificates in any number, and keys, encrypted or not. */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readCertificate } from './pkcs12.ts'
import { type StoreContents, StoreProblem } from './store-contents.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
const KEY = /-----BEGIN ((?:[A-Z]+ )?PRIVATE KEY)-----[\s\S]+?-----END \1-----/g

/** Throws a StoreProblem. */
export function readPem(bytes: Buffer, keyPassword: string): StoreContents {
  const text = bytes.toString('latin1')
  const certificates = text.match(CERTIFICATE) ?? []
  const keys = text.match(KEY) ?? []
  if (certificates.length + keys.length === 0) throw new StoreProblem('unreadable', 'it has no PEM block')
  return {
    keys: keys.map(pem => ({ alias: '', key: readKey(pem, keyPassword) })),
    certificates: certificates.map(pem => ({ alias: '', certificate: readCertificate(pem), isTrusted: true })),
    outdated: [],
  }
}

function readKey(pem: string, passphrase: string): KeyObject {
  const isEncrypted = pem.includes('ENCRYPTED')
  try {
    return createPrivateKey(isEncrypted ? { key: pem, passphrase } : pem)
  } catch {
    throw new StoreProblem(isEncrypted ? 'key password' : 'unreadable', 'a key in it cannot be read')
  }
}
