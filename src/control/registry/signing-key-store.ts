/**
 * The signing keys that all nodes of a database share, with encrypted private keys. Public keys are derived from
 * decrypted private keys alone: whoever can only write to the database cannot add a key.
 */
import type { ChangeLog } from './change-log.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import { SigningKeysUnusable } from './registry-errors.ts'
import type { NodeCiphers } from '../../database/secret-cipher.ts'
import type { SigningKeyRow } from './tables.ts'

/** Times in milliseconds since 1970. */
export interface StoredSigningKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string
  readonly createdMs: number
  /** From then on the key signs, until another one does; 0: it only verifies. */
  readonly signsFromMs: number
  /** Latest expiry of a token that the key signed. */
  readonly untilMs: number
  /** Private key, PKCS#8. */
  readonly pem: string
}

interface SigningKeyChange {
  readonly added?: readonly StoredSigningKey[]
  readonly removed?: readonly StoredSigningKey[]
}

export class SigningKeyStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #node: NodeCiphers

  constructor(database: Database, changes: ChangeLog, node: NodeCiphers) {
    this.#database = database
    this.#changes = changes
    this.#node = node
  }

  /** All keys. Rejects with SigningKeysUnusable where this node cannot decrypt one. */
  async list(): Promise<readonly StoredSigningKey[]> {
    const rows = await this.#database.read(db => db.selectFrom('sluice_signing_keys').selectAll().execute())
    const stored = rows.map(row => this.#storedKey(row))
    if (stored.every(({ isCurrent }) => isCurrent)) return stored.map(({ key }) => key)
    return this.#encryptAgain()
  }

  /** Changes the keys, one node at a time. `change` may run several times. Resolves with all keys after the change. */
  update(change: (keys: readonly StoredSigningKey[]) => SigningKeyChange): Promise<readonly StoredSigningKey[]> {
    return this.#changes.transaction(async (transaction, logChange) => {
      const before = await this.#lockedKeys(transaction)
      const { added = [], removed = [] } = change(before)
      for (const { kid } of removed) {
        await transaction.deleteFrom('sluice_signing_keys').where('kid', '=', kid).execute()
        logChange('signing_key', kid)
      }
      for (const key of added) {
        await transaction.insertInto('sluice_signing_keys').values(this.#rowOf(key)).execute()
        logChange('signing_key', key.kid)
      }
      return [...before.filter(key => !removed.includes(key)), ...added]
    })
  }

  /** Raises `untilMs` of a key before it signs a longer token. False where the key was removed. */
  extend(kid: string, untilMs: number): Promise<boolean> {
    return this.#database.transaction(async transaction => {
      const raise = transaction.updateTable('sluice_signing_keys').set({ until_ms: untilMs })
      await raise.where('kid', '=', kid).where('until_ms', '<', untilMs).execute()
      const row = transaction.selectFrom('sluice_signing_keys').select('kid').where('kid', '=', kid)
      return (await row.executeTakeFirst()) !== undefined
    })
  }

  async #lockedKeys(transaction: DatabaseTransaction): Promise<readonly StoredSigningKey[]> {
    await this.#changes.lock(transaction)
    const rows = await transaction.selectFrom('sluice_signing_keys').selectAll().execute()
    return rows.map(row => this.#storedKey(row).key)
  }

  /** With the first cipher, where another one encrypted a key. */
  #encryptAgain(): Promise<readonly StoredSigningKey[]> {
    return this.#changes.transaction(async transaction => {
      const keys = await this.#lockedKeys(transaction)
      for (const key of keys) {
        const { kid, private_key } = this.#rowOf(key)
        const change = transaction.updateTable('sluice_signing_keys').set({ private_key })
        await change.where('kid', '=', kid).execute()
      }
      return keys
    })
  }

  #rowOf({ kid, createdMs, signsFromMs, untilMs, pem }: StoredSigningKey): SigningKeyRow {
    const private_key = this.#node.ciphers[0]!.encrypt(pem, kid)
    return { kid, created_ms: createdMs, signs_from_ms: signsFromMs, until_ms: untilMs, private_key }
  }

  /** `isCurrent`: the first cipher encrypted it. */
  #storedKey(row: SigningKeyRow): { readonly key: StoredSigningKey; readonly isCurrent: boolean } {
    const { kid } = row
    for (const [index, cipher] of this.#node.ciphers.entries()) {
      const pem = cipher.decrypt(row.private_key, kid)
      if (pem === undefined) continue
      const [createdMs, signsFromMs, untilMs] = [row.created_ms, row.signs_from_ms, row.until_ms].map(Number)
      const key = { kid, createdMs: createdMs!, signsFromMs: signsFromMs!, untilMs: untilMs!, pem }
      return { key, isCurrent: index === 0 }
    }
    throw new SigningKeysUnusable(
      `${this.#node.source} is not the key that encrypts the signing keys in ${this.#database.description}: ` +
        'use the key of the other nodes, or of the last start; where it is lost, delete the rows of ' +
        'sluice_signing_keys, which invalidates all tokens',
    )
  }
}
