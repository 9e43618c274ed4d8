/** What is kept of tokens: their hash always, and the token itself only where configuration asks for it, encrypted. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readOrMake, unfit } from './generated-file.ts'

const FILE = 'token-encryption-key'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Tokens hold far more than 128 random or signed bits, so a plain hash of one cannot be guessed back. */
export function hashOfToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}

export class TokenVault {
  /** Null: nothing but hashes is kept. */
  readonly #key: Buffer | null

  private constructor(key: Buffer | null) {
    this.#key = key
  }

  static hashesOnly(): TokenVault {
    return new TokenVault(null)
  }

  /** The key is made by the first start that needs it. Throws ConfigurationFaults. */
  static encrypting(dataDir: string): TokenVault {
    const file = join(dataDir, FILE)
    const key = readOrMake(file, () => randomBytes(KEY_BYTES))
    if (key.length !== KEY_BYTES) throw unfit(file, 'is damaged', 'restore it from a backup, or remove it')
    return new TokenVault(key)
  }

  /** `id` is bound to it: what is moved to another row does not open. */
  keep(token: string, id: string): string {
    if (this.#key === null) return ''
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(id))
    const sealed = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
  }

  /** '' where it is not kept, or the key is another one than then. */
  open(kept: string, id: string): string {
    const bytes = Buffer.from(kept, 'base64')
    if (this.#key === null || bytes.length <= NONCE_BYTES + TAG_BYTES) return ''
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(id))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString()
    } catch {
      return ''
    }
  }
}
