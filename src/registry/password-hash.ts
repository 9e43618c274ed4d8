/**
 * Hashes of passwords and client secrets: argon2id (RFC 9106), as texts in the PHC format. Each takes 19 MiB and some
 * 30 ms on a thread of libuv's pool, so few run at once, and the queue in front of them has an end.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { RegistryUnavailable } from './registry.ts'

interface Cost {
  /** KiB. */
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

/** The least that OWASP recommends with this memory. Older hashes are replaced when their password is next shown. */
const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 }
/** What a hash in the database may ask for at most. */
const COST_MAX: Cost = { memory: 262_144, passes: 10, parallelism: 4 }
const SALT_BYTES = 16
const HASH_BYTES = 32

/** The pool has four threads, and files and names are looked up there, too. */
const AT_ONCE = 2
/** Some three seconds of work. */
const WAITING_MAX = 128

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

const derive = promisify(argon2)

let running = 0
const waiting: (() => void)[] = []

/** Throws RegistryUnavailable where too many wait already. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await inTurn(() => derived(password, salt, COST, HASH_BYTES))
  const { memory, passes, parallelism } = COST
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`
}

/** Whether it is the password, and whether its hash is weaker than those made now. Throws as `hashPassword`. */
export async function verifyPassword(password: string, phc: string): Promise<{ isRight: boolean; isOld: boolean }> {
  const read = readPhc(phc)
  // The work is done for nobody, too: time must not tell who there is.
  const { cost, salt, hash } = read ?? NOBODY
  const given = await inTurn(() => derived(password, salt, cost, hash.length))
  const isRight = timingSafeEqual(given, hash) && read !== undefined
  return { isRight, isOld: cost.memory < COST.memory || cost.passes < COST.passes }
}

const NOBODY = { cost: COST, salt: Buffer.alloc(SALT_BYTES), hash: Buffer.alloc(HASH_BYTES) }

function readPhc(phc: string) {
  const [, memory, passes, parallelism, salt, hash] = PHC.exec(phc) ?? []
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (salt === undefined || hash === undefined) return undefined
  if (cost.memory > COST_MAX.memory || cost.passes > COST_MAX.passes || cost.parallelism > COST_MAX.parallelism) {
    return undefined
  }
  return { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}

function derived(password: string, salt: Buffer, cost: Cost, tagLength: number): Promise<Buffer> {
  // One password has one form, however a keyboard composes it (RFC 8265 4.2).
  return derive('argon2id', { message: password.normalize('NFC'), nonce: salt, tagLength, ...cost })
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= AT_ONCE) {
    if (waiting.length >= WAITING_MAX) throw new RegistryUnavailable(`${WAITING_MAX} passwords wait for their check`)
    await new Promise<void>(resolve => waiting.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
