/** Decryption by password as it is done today (RFC 8018 6.2): a key from PBKDF2, a block cipher in CBC mode. */
import { createDecipheriv, pbkdf2Sync } from 'node:crypto'
import type { Asn1, DerReader } from './der.ts'
import { StoreProblem, type StoreProblemKind } from './store-contents.ts'

export const PBES2 = '1.2.840.113549.1.5.13'
const PBKDF2 = '1.2.840.113549.1.5.12'
const INTEGER = 2
const PRF_DEFAULT = '1.2.840.113549.2.7'
const PRFS: Readonly<Record<string, string>> = {
  [PRF_DEFAULT]: 'sha1',
  '1.2.840.113549.2.8': 'sha224',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
}
const CIPHERS: Readonly<Record<string, readonly [name: string, keyBytes: number]>> = {
  '2.16.840.1.101.3.4.1.2': ['aes-128-cbc', 16],
  '2.16.840.1.101.3.4.1.22': ['aes-192-cbc', 24],
  '2.16.840.1.101.3.4.1.42': ['aes-256-cbc', 32],
  '1.2.840.113549.3.7': ['des-ede3-cbc', 24],
}
/** More would keep the thread busy for seconds. */
export const ITERATIONS_MAX = 1_000_000

/** `wrong`: the kind of problem when the password does not open it. */
export function decryptPbes2(
  der: DerReader,
  parameters: Asn1,
  encrypted: string,
  password: string,
  wrong: StoreProblemKind,
): string {
  const [derivation, encryption] = der.parts(parameters)
  const [cipherOid, iv] = der.parts(encryption)
  const cipher = CIPHERS[der.oid(cipherOid)]
  if (cipher === undefined) throw new StoreProblem('outdated', `it is encrypted with ${der.oid(cipherOid)}`)
  const [name, keyBytes] = cipher
  const key = derive(der, derivation, password, keyBytes)
  const decipher = createDecipheriv(name, key, Buffer.from(der.bytes(iv), 'latin1'))
  try {
    return decipher.update(encrypted, 'latin1', 'latin1') + decipher.final('latin1')
  } catch {
    throw new StoreProblem(wrong, '')
  }
}

function derive(der: DerReader, derivation: Asn1 | undefined, password: string, keyBytes: number): Buffer {
  const [oid, parameters] = der.parts(derivation)
  if (der.oid(oid) !== PBKDF2) throw new StoreProblem('outdated', `its key is derived with ${der.oid(oid)}`)
  const [salt, iterations, ...optional] = der.parts(parameters)
  const prf = optional.find(({ type }) => type !== INTEGER)
  const prfOid = prf === undefined ? PRF_DEFAULT : der.oid(der.parts(prf)[0])
  const digest = PRFS[prfOid]
  if (digest === undefined) throw new StoreProblem('outdated', `its key is derived with ${prfOid}`)
  const rounds = der.count(iterations)
  if (rounds === 0 || rounds > ITERATIONS_MAX) throw new StoreProblem('unreadable', `${rounds} iterations`)
  // RFC 8018 leaves the encoding of passwords open, and everybody takes UTF-8.
  return pbkdf2Sync(Buffer.from(password, 'utf8'), Buffer.from(der.bytes(salt), 'latin1'), rounds, keyBytes, digest)
}
