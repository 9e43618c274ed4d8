/**
 * JKS stores: entries in a row, each key wrapped with a keystream of SHA-1, and a digest at the end that only the
 * password makes. The format is old and fixed; Java documents it in the source of its key store.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { DerReader, loadAsn1 } from './der.ts'
import { readCertificate, readKey } from './pkcs12.ts'
import { type StoreContents, type StoredCertificate, type StoredKey, StoreProblem } from './store-contents.ts'

const TAG = { key: 1, trusted: 2 }
const DIGEST_BYTES = 20
/** What the digest of a store starts with, besides the password. */
const WHITENER = 'Mighty Aphrodite'

/** An empty store password leaves the digest unchecked, as Java does. Throws a StoreProblem. */
export async function readJks(bytes: Buffer, password: string, keyPassword: string): Promise<StoreContents> {
  if (password !== '') verifyDigest(bytes, password)
  const der = new DerReader(await loadAsn1())
  const reader = new JksReader(bytes)
  const keys: StoredKey[] = []
  const certificates: StoredCertificate[] = []
  for (let left = reader.count(); left > 0; left--) {
    const tag = reader.u4()
    const alias = reader.text()
    reader.skip(8) // The date of the entry.
    if (tag === TAG.key) {
      const wrapped = der.parse(reader.block().toString('latin1'))
      const protectedKey = Buffer.from(der.bytes(der.parts(wrapped)[1]), 'latin1')
      const key = readKey(unwrap(protectedKey, keyPassword === '' ? password : keyPassword), 'key password')
      keys.push({ alias, key })
      for (let links = reader.u4(); links > 0; links--) {
        certificates.push({ alias, certificate: reader.certificate(), isTrusted: false })
      }
    } else if (tag === TAG.trusted) {
      certificates.push({ alias, certificate: reader.certificate(), isTrusted: true })
    } else {
      throw new StoreProblem('unreadable', 'it has an entry of an unknown kind')
    }
  }
  return { keys, certificates, outdated: [] }
}

function verifyDigest(bytes: Buffer, password: string): void {
  if (bytes.length < DIGEST_BYTES) throw new StoreProblem('unreadable', 'it ends too early')
  const content = bytes.subarray(0, -DIGEST_BYTES)
  const digest = createHash('sha1').update(encode(password)).update(WHITENER).update(content).digest()
  if (!timingSafeEqual(digest, bytes.subarray(-DIGEST_BYTES))) throw new StoreProblem('store password', '')
}

/** Salt, the key in a keystream, and a digest of the key: 20 bytes, the key's length, 20 bytes. */
function unwrap(wrapped: Buffer, password: string): Buffer {
  if (wrapped.length < 2 * DIGEST_BYTES) throw new StoreProblem('unreadable', 'a key in it is too short')
  const secret = encode(password)
  const plain = Buffer.from(wrapped.subarray(DIGEST_BYTES, -DIGEST_BYTES))
  let stream = wrapped.subarray(0, DIGEST_BYTES)
  for (let at = 0; at < plain.length; at++) {
    if (at % DIGEST_BYTES === 0) stream = createHash('sha1').update(secret).update(stream).digest()
    plain[at]! ^= stream[at % DIGEST_BYTES]!
  }
  const check = createHash('sha1').update(secret).update(plain).digest()
  if (!timingSafeEqual(check, wrapped.subarray(-DIGEST_BYTES))) throw new StoreProblem('key password', '')
  return plain
}

/** Two bytes a character, the higher first. */
function encode(password: string): Buffer {
  return Buffer.from(password, 'utf16le').swap16()
}

class JksReader {
  readonly #bytes: Buffer
  readonly #version: number
  #at = 4

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#version = this.u4()
    if (this.#version !== 1 && this.#version !== 2) {
      throw new StoreProblem('unreadable', `version ${this.#version} is not known`)
    }
  }

  count(): number {
    return this.u4()
  }

  u4(): number {
    return this.#take(4).readUInt32BE()
  }

  skip(length: number): void {
    this.#take(length)
  }

  text(): string {
    return this.#take(this.#take(2).readUInt16BE()).toString('utf8')
  }

  block(): Buffer {
    return this.#take(this.u4())
  }

  certificate(): StoredCertificate['certificate'] {
    if (this.#version === 2) this.text()
    return readCertificate(this.block())
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new StoreProblem('unreadable', 'it ends too early')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}
