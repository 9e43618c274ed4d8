/**
 * JKS key stores of Java: a sequence of entries, keys encrypted with a SHA-1 keystream, and a SHA-1 digest over content
 * and password at the end. The format is defined by the source of Java's key store.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { DerReader, loadAsn1 } from './der.ts'
import {
  parseCertificate,
  parseKey,
  type StoreContents,
  type StoredCertificate,
  type StoredKey,
  StoreError,
} from './store-contents.ts'

const ENTRY_TAG = { key: 1, trustedCertificate: 2 }
const DIGEST_BYTES = 20
/** Constant that Java hashes between the password and the content. */
const DIGEST_CONSTANT = 'Mighty Aphrodite'

/** An empty store password skips the check of the digest, as in Java. Throws a StoreError. */
export async function readJks(bytes: Buffer, password: string, keyPassword: string): Promise<StoreContents> {
  if (password !== '') verifyDigest(bytes, password)
  const der = new DerReader(await loadAsn1())
  const reader = new JksReader(bytes)
  const keys: StoredKey[] = []
  const certificates: StoredCertificate[] = []
  for (let entriesLeft = reader.uint32(); entriesLeft > 0; entriesLeft--) {
    const tag = reader.uint32()
    const alias = reader.text()
    reader.skip(8) // Date of the entry.
    if (tag === ENTRY_TAG.key) {
      const encryptedInfo = der.parse(reader.block().toString('latin1'))
      const encrypted = Buffer.from(der.bytes(der.parts(encryptedInfo)[1]), 'latin1')
      const key = parseKey(decryptKey(encrypted, keyPassword === '' ? password : keyPassword), 'key password')
      keys.push({ alias, key })
      for (let chainLength = reader.uint32(); chainLength > 0; chainLength--) {
        certificates.push({ alias, certificate: reader.certificate(), isTrusted: false })
      }
    } else if (tag === ENTRY_TAG.trustedCertificate) {
      certificates.push({ alias, certificate: reader.certificate(), isTrusted: true })
    } else {
      throw new StoreError('malformed', 'an entry has an unknown tag')
    }
  }
  return { keys, certificates, weakAlgorithms: [] }
}

function verifyDigest(bytes: Buffer, password: string): void {
  if (bytes.length < DIGEST_BYTES) throw new StoreError('malformed', 'the file is truncated')
  const content = bytes.subarray(0, -DIGEST_BYTES)
  const digest = createHash('sha1').update(encode(password)).update(DIGEST_CONSTANT).update(content).digest()
  if (!timingSafeEqual(digest, bytes.subarray(-DIGEST_BYTES))) throw new StoreError('store password', '')
}

/** `encrypted`: salt (20 bytes), the key XOR the keystream, SHA-1 of password and key (20 bytes). */
function decryptKey(encrypted: Buffer, password: string): Buffer {
  if (encrypted.length < 2 * DIGEST_BYTES) throw new StoreError('malformed', 'a key is too short')
  const secret = encode(password)
  const plain = Buffer.from(encrypted.subarray(DIGEST_BYTES, -DIGEST_BYTES))
  let keystream = encrypted.subarray(0, DIGEST_BYTES)
  for (let at = 0; at < plain.length; at++) {
    if (at % DIGEST_BYTES === 0) keystream = createHash('sha1').update(secret).update(keystream).digest()
    plain[at]! ^= keystream[at % DIGEST_BYTES]!
  }
  const digest = createHash('sha1').update(secret).update(plain).digest()
  if (!timingSafeEqual(digest, encrypted.subarray(-DIGEST_BYTES))) throw new StoreError('key password', '')
  return plain
}

/** UTF-16, big-endian. */
function encode(password: string): Buffer {
  return Buffer.from(password, 'utf16le').swap16()
}

class JksReader {
  readonly #bytes: Buffer
  readonly #version: number
  #at = 4

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#version = this.uint32()
    if (this.#version !== 1 && this.#version !== 2) {
      throw new StoreError('malformed', `unknown version ${this.#version}`)
    }
  }

  uint32(): number {
    return this.#take(4).readUInt32BE()
  }

  skip(length: number): void {
    this.#take(length)
  }

  text(): string {
    return this.#take(this.#take(2).readUInt16BE()).toString('utf8')
  }

  block(): Buffer {
    return this.#take(this.uint32())
  }

  certificate(): StoredCertificate['certificate'] {
    // Version 2 names the type of each certificate.
    if (this.#version === 2) this.text()
    return parseCertificate(this.block())
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new StoreError('malformed', 'the file is truncated')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
