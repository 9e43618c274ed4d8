/** Serves what tasks on workers ask of their reactor: requests to backends, background copies, kept responses. */
import { LRUCache } from 'lru-cache'
import { FAULT } from '../../faults/error-codes.ts'
import { OWN_ENDPOINT } from '../../mediation/endpoint-plan.ts'
import { bodyFormatOf } from '../../mediation/formats/body-types.ts'
import { withoutParameter } from '../../mediation/formats/charset.ts'
import type { BackendRequest, BackendResult, KeepRequest, TaskCall } from '../../mediation/task-calls.ts'
import type { TraceRecords } from '../../observe/trace-records.ts'
import type { WorkerService } from '../../mediation/worker-service.ts'
import { CREDENTIALS_REFUSED } from '../../protocol/failure-table.ts'
import type { FlowTask, TransferredMessage } from '../../mediation/worker-task.ts'
import type { CacheUsage } from '../../runtime/cache-usage.ts'
import type { OwnCredential } from '../exchange/caller.ts'
import type { ConnectionContext } from '../exchange/connection-context.ts'
import type { BlockingCallSettings, BlockingCalls } from '../../plan/reactor-plan.ts'
import { BackendCall, UNSENDABLE } from './backend-call.ts'
import { type BodyStore, deleteFile, files } from './body-store.ts'
import type { OwnTargets } from './own-targets.ts'
import type { ResolvedEndpoint, SequenceEndpoints, TokenSource } from './sequence-endpoint.ts'

/** Requests of all tasks of a reactor at once. */
const CALLS_MAX = 4096
const BUSY = 102552
/** Bytes of the responses that a reactor keeps for sequences (`<cache>`), with their heads. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024
const KEPT_MAX = 10_000
/** An entry beside its texts and its body. */
const ENTRY_BYTES = 512

interface KeptResponse {
  /** See `KeepRequest`. */
  readonly cache: string
  readonly message: TransferredMessage
}

interface ServerOptions {
  readonly context: ConnectionContext
  readonly store: BodyStore
  readonly endpoints: SequenceEndpoints
  readonly ownTargets: OwnTargets
  readonly idPrefix: string
  readonly blockingCalls: BlockingCalls
  readonly background: WorkerService['background']
  /** Called when no task in the background is left. */
  readonly backgroundOver: () => void
  /** Null where requests are not traced. */
  readonly traces: TraceRecords | null
}

/** A request to a backend, or the token for one, that a task waits for. */
interface Waited {
  giveUp(): void
}

export class TaskCallsServer {
  readonly #options: ServerOptions
  readonly #kept = new LRUCache<string, KeptResponse>({
    max: KEPT_MAX,
    maxSize: KEPT_BYTES_MAX,
    sizeCalculation: ({ message }, key) => sizeOf(message, key),
    dispose: ({ cache }, key, reason) => {
      if (reason === 'evict') this.#evictions++
      // A response that replaces it is of the same cache.
      if (reason !== 'set') this.#leave(cache, key)
    },
  })
  /** Keys of the responses of each cache, from the one that was asked for longest ago. */
  readonly #keysOf = new Map<string, Set<string>>()
  #evictions = 0
  #hits = 0
  #misses = 0
  /** Requests to backends by the task that waits for them. */
  readonly #ofTasks = new Map<number, Set<Waited>>()
  #blockingCalls: BlockingCalls
  #pending = 0
  #inBackground = 0
  #lastId = 0

  constructor(options: ServerOptions) {
    this.#options = options
    this.#blockingCalls = options.blockingCalls
  }

  /** Requests to backends that are under way. */
  get pending(): number {
    return this.#pending
  }

  /** Tasks in the background that run or wait. */
  get inBackground(): number {
    return this.#inBackground
  }

  /** Ends the requests of a task for whose result nobody waits any more. */
  leave(task: number): void {
    for (const call of [...(this.#ofTasks.get(task) ?? [])]) call.giveUp()
  }

  #join(task: number, call: Waited): void {
    const calls = this.#ofTasks.get(task) ?? new Set()
    this.#ofTasks.set(task, calls.add(call))
  }

  #part(task: number, call: Waited): void {
    const calls = this.#ofTasks.get(task)
    calls?.delete(call)
    if (calls?.size === 0) this.#ofTasks.delete(task)
  }

  /** Usage of the responses that sequences keep. */
  keptUsage(): CacheUsage {
    const { size: entries, calculatedSize: bytes } = this.#kept
    return { entries, bytes, evictions: this.#evictions, hits: this.#hits, misses: this.#misses }
  }

  /** Applies a reload. Kept responses go: the sequences that made them may have changed. */
  update(blockingCalls: BlockingCalls): void {
    this.#blockingCalls = blockingCalls
    this.#kept.clear()
  }

  /** The result of a call, or a promise of it. */
  serve(call: TaskCall): unknown {
    switch (call.kind) {
      case 'backend':
        return this.#request(call)
      case 'background':
        return this.#runInBackground(call.task)
      case 'kept':
        return this.#keptFor(call.key)
      case 'keep':
        return this.#keep(call)
    }
  }

  /** The task keeps the endpoint of its API, and the file of its body, once the flow that made it is over. */
  async #runInBackground(task: FlowTask): Promise<boolean> {
    const { ownTargets, store, background, backgroundOver } = this.#options
    const { own = 0 } = task
    ownTargets.share(own)
    let over: Promise<void> | null = null
    let body: FlowTask['message']['body'] = { kind: 'none' }
    const release = (): void => {
      ownTargets.delete(own)
      if (body.kind === 'file') deleteFile(body.path)
    }
    try {
      const message = await withOwnFile(task.message, store)
      body = message.body
      over = background({ ...task, message })
    } finally {
      if (over === null) release()
      else {
        this.#inBackground++
        void over.then(() => {
          release()
          if (--this.#inBackground === 0) backgroundOver()
        })
      }
    }
    return over !== null
  }

  async #start(call: BackendCall, resolved: ResolvedEndpoint, message: TransferredMessage): Promise<void> {
    try {
      const { body } = message
      const own = body.kind === 'file' ? await withOwnFile(message, this.#options.store) : message
      call.start(resolved, own)
    } catch (error) {
      call.feedThrew(error)
    }
  }

  #keptFor(key: string): TransferredMessage | null {
    const kept = this.#kept.get(key)
    if (kept === undefined) {
      this.#misses++
      return null
    }
    this.#hits++
    this.#enter(kept.cache, key)
    return kept.message
  }

  #keep({ key, lifetimeMs, cache, entriesMax, message }: KeepRequest): null {
    this.#kept.set(key, { cache, message }, { ttl: lifetimeMs })
    // A response that is longer than all that may be kept is not there.
    if (!this.#kept.has(key)) this.#leave(cache, key)
    else this.#bound(cache, key, entriesMax)
    return null
  }

  #bound(cache: string, key: string, entriesMax: number): void {
    const keys = this.#enter(cache, key)
    for (const oldest of keys) {
      if (keys.size <= entriesMax) break
      this.#evictions++
      this.#kept.delete(oldest)
    }
  }

  /** The key becomes the last one of its cache. */
  #enter(cache: string, key: string): Set<string> {
    const keys = this.#keysOf.get(cache) ?? new Set()
    this.#keysOf.set(cache, keys)
    keys.delete(key)
    return keys.add(key)
  }

  #leave(cache: string, key: string): void {
    const keys = this.#keysOf.get(cache)
    if (keys?.delete(key) && keys.size === 0) this.#keysOf.delete(cache)
  }

  /** A sentence where the message cannot be sent to the endpoint of its API. */
  #resolveOwn(own: number, { method, target: path }: TransferredMessage): ResolvedEndpoint | string {
    const found = this.#options.ownTargets.get(own)
    return found === undefined
      ? 'a <send> names no endpoint, and the API has none, or its message is a copy in the background'
      : { ...found, secured: false, method, path }
  }

  #request(request: BackendRequest): Promise<BackendResult> | BackendResult {
    const { endpoint, own = 0, message } = request
    const { endpoints } = this.#options
    const resolved = endpoint === OWN_ENDPOINT ? this.#resolveOwn(own, message) : endpoints.resolve(endpoint, message)
    const isBusy = this.#pending >= CALLS_MAX
    if (isBusy || typeof resolved === 'string') {
      const cause = typeof resolved === 'string' ? resolved : `${CALLS_MAX} calls of sequences are under way`
      return faultOf(isBusy ? BUSY : UNSENDABLE, cause)
    }
    this.#pending++
    const { tokens } = resolved
    const result = tokens === undefined ? this.#send(request, resolved) : this.#sendWith(tokens, request, resolved)
    return result.finally(() => this.#pending--)
  }

  /** Sends once more where the backend refuses the token and there is another one (D797). */
  async #sendWith(tokens: TokenSource, request: BackendRequest, resolved: ResolvedEndpoint): Promise<BackendResult> {
    const { message } = request
    const fields = message.fields.filter(([name]) => name.toLowerCase() !== 'authorization')
    const withoutOwn = { ...request, message: { ...message, fields } }
    let refused: BackendResult | null = null
    for (let before = ''; ; ) {
      const credential = await this.#tokenFor(request, tokens)
      if ('kind' in credential) return credential
      if (refused !== null && credential.line === before) return refused
      const own = { ...resolved, callerLines: credential.line, ownCredential: credential }
      const result = await this.#send(withoutOwn, own)
      if (refused !== null || !isRefusal(result)) return result
      refused = result
      before = credential.line
    }
  }

  /** Resolves with a fault where there is no token, and where nobody waits for the task any more. */
  async #tokenFor({ endpoint, task = 0 }: BackendRequest, tokens: TokenSource): Promise<OwnCredential | BackendResult> {
    let isWaitedFor = true
    const waited: Waited = { giveUp: () => (isWaitedFor = false) }
    this.#join(task, waited)
    try {
      const credential = await tokens.get()
      return isWaitedFor ? credential : faultOf(UNSENDABLE, 'nobody waits for the response any more')
    } catch (error) {
      return faultOf(CREDENTIALS_REFUSED, `the endpoint ${endpoint} has no token: ${(error as Error).message}`)
    } finally {
      this.#part(task, waited)
    }
  }

  #send(request: BackendRequest, resolved: ResolvedEndpoint): Promise<BackendResult> {
    const {
      calls,
      trace = null,
      isBlocking,
      isForwarded = false,
      client,
      changed,
      message,
      bodyMethod,
      secrets = [],
      endMs = 0,
      task = 0,
    } = request
    const { context, store, idPrefix, traces } = this.#options
    const settings = isBlocking ? this.#blockingCalls[resolved.secured ? 'secured' : 'plain'] : NOT_BLOCKING
    const sent = settings.omitsSoap12Action ? withoutSoap12Action(message) : message
    return new Promise(resolve => {
      const call = new BackendCall({
        context,
        store,
        clientAddress: client,
        idPrefix,
        id: ++this.#lastId,
        calls,
        changed,
        isForwarded,
        secrets,
        bodyMethod,
        endMs,
        traced: trace === null || traces === null ? null : { trace, traces },
        timeoutMs: settings.timeoutMs,
        done: result => {
          this.#part(task, call)
          resolve(result)
        },
      })
      this.#join(task, call)
      void this.#start(call, resolved, sent)
    })
  }
}

function faultOf(code: typeof BUSY | typeof UNSENDABLE | typeof CREDENTIALS_REFUSED, cause: string): BackendResult {
  const { message, description: detail } = FAULT[code]
  return { kind: 'fault', fault: { code, message, detail, cause, sequence: '' } }
}

function isRefusal(result: BackendResult): boolean {
  return result.kind === 'fault' && result.fault.code === CREDENTIALS_REFUSED
}

const NOT_BLOCKING: BlockingCallSettings = { timeoutMs: 0, omitsSoap12Action: false }

function withoutSoap12Action(message: TransferredMessage): TransferredMessage {
  const fields = message.fields.map(([name, value]) => {
    const carries = name.toLowerCase() === 'content-type' && bodyFormatOf(value) === 'soap12'
    return [name, carries ? withoutParameter(value, 'action') : value] as const
  })
  return { ...message, fields }
}

/** A name of its own for the body, where a file has it: the other one belongs to the flow of the task. */
async function withOwnFile(message: TransferredMessage, store: BodyStore): Promise<TransferredMessage> {
  const { body } = message
  if (body.kind !== 'file') return message
  const path = store.newPath()
  // A whole body never changes; a file system without links copies it.
  await files.link(body.path, path).catch(() => copyOf(body.path, path))
  return { ...message, body: { ...body, path } }
}

async function copyOf(from: string, to: string): Promise<void> {
  try {
    await files.copy(from, to)
  } catch (error) {
    deleteFile(to)
    throw error
  }
}

function sizeOf({ target, fields, body }: TransferredMessage, key: string): number {
  const texts = fields.reduce((sum, [name, value]) => sum + name.length + value.length, key.length + target.length)
  return ENTRY_BYTES + 2 * texts + (body.kind === 'bytes' ? body.bytes.byteLength : 0)
}
