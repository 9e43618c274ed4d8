/**
 * Encrypts secrets in the database (AES-256-GCM). Every node of a database server names the same `encryption.key`; the
 * embedded database may do without it, with a key that the first start writes to a file.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readOrCreate, unusableFile } from './secret-file.ts'

const FILE = 'encryption-key'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Ciphers of a node: the first encrypts, each may have encrypted what is stored. */
export interface NodeCiphers {
  readonly ciphers: readonly SecretCipher[]
  /** The key or file that holds the secret of the first cipher, for messages. */
  readonly source: string
}

/** Throws ConfigurationErrors where the file cannot be read, created, or is damaged. */
export function openCiphers(encryptionKey: string, dataDir: string, isEmbedded: boolean): NodeCiphers {
  const file = join(dataDir, FILE)
  const configured = encryptionKey === '' ? [] : [new SecretCipher(encryptionKey)]
  // A key that is configured later replaces that of the file.
  const readsFile = isEmbedded && (configured.length === 0 || existsSync(file))
  const generated = readsFile ? [new SecretCipher(generatedSecret(file))] : []
  return { ciphers: [...configured, ...generated], source: configured.length > 0 ? 'encryption.key' : file }
}

function generatedSecret(file: string): string {
  const make = () => Buffer.from(`${randomBytes(KEY_BYTES).toString('hex')}\n`)
  const secret = readOrCreate(file, make).toString().trim()
  if (secret.length < 2 * KEY_BYTES) throw unusableFile(file, 'is damaged', 'restore it from a backup')
  return secret
}

/** The ciphers of a node as one. */
export class SecretBox {
  readonly #ciphers: readonly SecretCipher[]

  /** Throws where there is no cipher: a database server without `encryption.key`. */
  constructor({ ciphers, source }: NodeCiphers) {
    if (ciphers.length === 0) throw new Error(`secrets of a database server need ${source}`)
    this.#ciphers = ciphers
  }

  encrypt(text: string, context: string): string {
    return this.#ciphers[0]!.encrypt(text, context)
  }

  /** A keyed hash, in base64: nobody without the key can try texts against it. */
  digest(text: string): string {
    return this.#ciphers[0]!.digest(text)
  }

  /** Undefined for a text that no cipher of this node has encrypted with this `context`. */
  decrypt(encrypted: string, context: string): string | undefined {
    for (const cipher of this.#ciphers) {
      const text = cipher.decrypt(encrypted, context)
      if (text !== undefined) return text
    }
    return undefined
  }
}

export class SecretCipher {
  readonly #key: Buffer
  readonly #digestKey: Buffer

  /** `secret`: at least 32 random characters in any encoding (HKDF, RFC 5869). */
  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'sluice private keys', KEY_BYTES))
    this.#digestKey = Buffer.from(hkdfSync('sha256', secret, '', 'sluice digests', KEY_BYTES))
  }

  /** Nonce, tag and ciphertext in base64. `context` is authenticated too: the result decrypts with it only. */
  encrypt(text: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(context))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]).toString('base64')
  }

  digest(text: string): string {
    return createHmac('sha256', this.#digestKey).update(text).digest('base64')
  }

  /** Undefined for a text that this secret did not encrypt with this `context`. */
  decrypt(encrypted: string, context: string): string | undefined {
    const bytes = Buffer.from(encrypted, 'base64')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString()
    } catch {
      return undefined
    }
  }
}
