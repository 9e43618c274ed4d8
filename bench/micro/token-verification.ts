/**
 * Methods to verify the signature of a new token: `npx node bench/micro/token-verification.ts`. CPU microseconds of the
 * whole process with its thread pool, and of the calling thread, which handles no requests meanwhile.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { MeasuredTable } from '../measured-table.ts'
import { median } from '../results.ts'

const ROUNDS = 9
const TOKENS = 600
const CONCURRENCY = 64
/** Tokens per message to a worker, as if they arrived in one turn of the event loop. */
const BATCH = 16

interface KeyKind {
  readonly name: string
  readonly key: KeyObject
  readonly privateKey: KeyObject
  readonly dsa: 'der' | 'ieee-p1363'
}

/** null for Ed25519, which includes its hash. */
function digestFor(name: string): string | null {
  return name === 'EdDSA' ? null : 'sha256'
}

interface Token {
  readonly text: string
  readonly input: Buffer
  readonly signature: Buffer
}

function split(text: string): Pick<Token, 'input' | 'signature'> {
  const dot = text.lastIndexOf('.')
  return { input: Buffer.from(text.slice(0, dot), 'latin1'), signature: Buffer.from(text.slice(dot + 1), 'base64url') }
}

function serveJobs(): void {
  const { spki, dsa, name } = workerData as { spki: Buffer; dsa: KeyKind['dsa']; name: string }
  const key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
  const verifyOne = (text: string) => {
    const { input, signature } = split(text)
    return verify(digestFor(name), input, { key, dsaEncoding: dsa }, signature)
  }
  parentPort!.on('message', (jobs: readonly string[]) => parentPort!.postMessage(jobs.map(verifyOne)))
}

function keyKinds(): KeyKind[] {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  return [
    { name: 'RS256', key: rsa.publicKey, privateKey: rsa.privateKey, dsa: 'der' },
    { name: 'ES256', key: ec.publicKey, privateKey: ec.privateKey, dsa: 'ieee-p1363' },
    { name: 'EdDSA', key: ed.publicKey, privateKey: ed.privateKey, dsa: 'der' },
  ]
}

function makeTokens({ name, privateKey, dsa }: KeyKind): Token[] {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return Array.from({ length: TOKENS }, (_, i) => {
    const claims = {
      iss: 'https://issuer.example/oauth2/token',
      aud: 'gateway',
      sub: `user${i}@example.org`,
      azp: 'client-4711',
      scope: 'read:orders write:orders',
      aut: 'APPLICATION_USER',
      jti: `6f1c2a34-${i}`,
      exp: 4_000_000_000,
      iat: 1,
    }
    const input = Buffer.from(`${part({ typ: 'at+jwt', alg: name, kid: 'k1' })}.${part(claims)}`, 'latin1')
    const algorithm = digestFor(name)
    const signature = sign(algorithm, input, { key: privateKey, dsaEncoding: dsa })
    return { text: `${input.toString('latin1')}.${signature.toString('base64url')}`, input, signature }
  })
}

interface Method {
  readonly name: string
  readonly run: (tokens: readonly Token[]) => Promise<void>
}

function check(isValid: boolean): void {
  if (!isValid) throw new Error('a valid token was refused')
}

/** Verifies CONCURRENCY tokens at a time. */
async function concurrently(tokens: readonly Token[], verifyOne: (token: Token) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < tokens.length) await verifyOne(tokens[next++]!)
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, lane))
}

function viaPool(kind: KeyKind): (token: Token) => Promise<void> {
  const options = { key: kind.key, dsaEncoding: kind.dsa }
  const algorithm = digestFor(kind.name)
  return token =>
    new Promise((resolve, reject) => {
      const { input, signature } = split(token.text)
      verify(algorithm, input, options, signature, (error, isValid) => {
        if (error !== null || !isValid) reject(error ?? new Error('a valid token was refused'))
        else resolve()
      })
    })
}

function viaWorker(worker: Worker): Method['run'] {
  return async tokens => {
    for (let i = 0; i < tokens.length; i += BATCH) {
      const verified = new Promise<boolean[]>(resolve => worker.once('message', resolve))
      worker.postMessage(tokens.slice(i, i + BATCH).map(({ text }) => text))
      for (const isValid of await verified) check(isValid)
    }
  }
}

/** With the package jose, if it is installed. */
async function viaJose(kind: KeyKind): Promise<Method[]> {
  const name = 'jose'
  try {
    const { jwtVerify } = (await import(name)) as {
      jwtVerify(token: string, key: KeyObject | unknown, options: object): Promise<{ payload: object }>
    }
    const options = { algorithms: [kind.name], issuer: 'https://issuer.example/oauth2/token', audience: 'gateway' }
    const format =
      kind.name === 'RS256' ? { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } : { name: 'ECDSA', namedCurve: 'P-256' }
    const spki = kind.key.export({ format: 'der', type: 'spki' })
    const key = await crypto.subtle.importKey('spki', spki, kind.name === 'EdDSA' ? 'Ed25519' : format, false, [
      'verify',
    ])
    const verifyOne = async ({ text }: Token) => {
      await jwtVerify(text, key, options)
    }
    return [
      {
        name: 'jose, sequential',
        run: async tokens => {
          for (const token of tokens) await verifyOne(token)
        },
      },
      { name: `jose, ${CONCURRENCY} concurrent`, run: tokens => concurrently(tokens, verifyOne) },
    ]
  } catch {
    return []
  }
}

function sequentially(verifyOne: (token: Token) => void): Method['run'] {
  return async tokens => {
    for (const token of tokens) verifyOne(token)
  }
}

async function measure(kind: KeyKind): Promise<void> {
  const tokens = makeTokens(kind)
  const spki = kind.key.export({ format: 'der', type: 'spki' })
  const worker = new Worker(new URL(import.meta.url), { workerData: { spki, dsa: kind.dsa, name: kind.name } })
  const algorithm = digestFor(kind.name)
  const options = { key: kind.key, dsaEncoding: kind.dsa }
  const methods: Method[] = [
    {
      name: 'crypto.verify, synchronous, signature only',
      run: sequentially(({ input, signature }) => check(verify(algorithm, input, options, signature))),
    },
    {
      name: 'the same with header and claims parsed',
      run: sequentially(({ text }) => {
        const { input, signature } = split(text)
        check(verify(algorithm, input, options, signature))
        const [head, claims] = input.toString('latin1').split('.')
        const { alg } = JSON.parse(Buffer.from(head!, 'base64url').toString())
        const { exp } = JSON.parse(Buffer.from(claims!, 'base64url').toString())
        check(alg === kind.name && exp > 1_800_000_000)
      }),
    },
    {
      name: `crypto.verify with a callback, ${CONCURRENCY} concurrent`,
      run: tokens => concurrently(tokens, viaPool(kind)),
    },
    { name: `one worker, ${BATCH} tokens per message`, run: viaWorker(worker) },
    ...(await viaJose(kind)),
  ]
  const figures = methods.map(() => ({ cpu: [] as number[], thread: [] as number[], wall: [] as number[] }))
  for (const { run } of methods) await run(tokens)
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { run }] of methods.entries()) {
      const cpu = process.cpuUsage()
      const own = process.threadCpuUsage()
      const started = performance.now()
      await run(tokens)
      const { user, system } = process.cpuUsage(cpu)
      const thread = process.threadCpuUsage(own)
      figures[i]!.wall.push(((performance.now() - started) * 1000) / TOKENS)
      figures[i]!.cpu.push((user + system) / TOKENS)
      figures[i]!.thread.push((thread.user + thread.system) / TOKENS)
    }
  }
  const columns = { 'CPU µs': 1, 'µs of the calling thread': 1, 'µs elapsed': 1 }
  const table = new MeasuredTable(`${kind.name}, ${tokens[0]!.text.length} characters`, columns)
  for (const [i, { name }] of methods.entries()) {
    const { cpu, thread, wall } = figures[i]!
    table.row(name, ...[cpu, thread, wall].map(median))
  }
  await worker.terminate()
}

if (isMainThread) for (const kind of keyKinds()) await measure(kind)
else serveJobs()
