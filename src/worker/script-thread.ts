/**
 * A script thread: runs one script at a time. Inline text runs in a context of its own for each message, which holds
 * nothing but the language and `mc`: no module, no process, no memory of an earlier message. An ES module of the
 * operator is ordinary code of Node.
 */
import { parentPort, workerData } from 'node:worker_threads'
import vm from 'node:vm'
import { LRUCache } from 'lru-cache'
import { ModuleCache } from '../mediation/module-cache.ts'
import { ScriptMessage } from '../mediation/script-message.ts'
import type { ScriptReply, ScriptSource, ScriptTask } from '../mediation/script-task.ts'
import { READY } from '../runtime/isolated-threads.ts'
import { MemoryReport } from '../runtime/thread-memory.ts'

/** `workerData` of a script thread. */
export interface ScriptThreadData {
  readonly home: string
  /** Folder of Node's compile cache; undefined for none. */
  readonly compileCache: string | undefined
}

/** Compiled scripts that a thread keeps. */
const SCRIPTS_MAX = 200
/** Memory outside of the heap, which the limit of the thread does not count. */
const OFF_HEAP = [
  ...['ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'Atomics', 'WebAssembly'],
  ...['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array'],
  ...['Float16Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array'],
]

/**
 * Makes `mc` in the context of a script, and what ends the script. `print` and `console` are those of the engines of
 * the reference platform.
 */
const PRELUDE = new vm.Script(
  `'use strict';
  (() => {
    const ScriptMessage = (${ScriptMessage.toString()});
    const { end } = ScriptMessage;
    const define = Object.defineProperty, whole = globalThis;
    for (const name of ${JSON.stringify(OFF_HEAP)}) delete whole[name];
    return (state, payload, envelope, xml) => {
      const mc = new ScriptMessage(state, payload, envelope, xml);
      const log = mc.getServiceLog();
      const fixed = (name, value) => define(whole, name, { value, writable: true, configurable: true });
      fixed('mc', mc);
      fixed('print', text => log.info(text));
      fixed('console', { log: log.info, info: log.info, debug: log.debug, warn: log.warn, error: log.error });
      return () => end(mc);
    };
  })()`,
  { filename: 'mc' },
)

const scripts = new LRUCache<string, vm.Script>({ max: SCRIPTS_MAX })
const modules = new ModuleCache((workerData as ScriptThreadData).home)

function compiled(source: Exclude<ScriptSource, { kind: 'module' }>): vm.Script {
  const { text, label } = source
  const call = source.kind === 'entry' ? `\n;${source.function}(mc)` : ''
  const { line } = source
  const key = `${label}:${line}:${call}:${text}`
  let script = scripts.get(key)
  if (script === undefined) {
    script = new vm.Script(text + call, { filename: label, lineOffset: line - 1 })
    scripts.set(key, script)
  }
  return script
}

function runText(source: Exclude<ScriptSource, { kind: 'module' }>, task: ScriptTask): ScriptReply {
  const script = compiled(source)
  const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, {
    codeGeneration: { strings: false, wasm: false },
    // Promises of a script are settled before the script ends, within its time limit.
    microtaskMode: 'afterEvaluate',
  })
  const prepare = PRELUDE.runInContext(context) as (...texts: string[]) => () => readonly string[]
  const end = prepare(task.state, task.payload, task.envelope, task.xml)
  const result: unknown = script.runInContext(context)
  return done(result, end())
}

/** As on the reference platform, a script whose value is false ends the sequence. */
function done(result: unknown, [changes = '[]', kind, text = '']: readonly string[]): ScriptReply {
  type Kind = 'json' | 'xml' | 'text' | 'none'
  const payload = kind === undefined ? null : { kind: String(kind) as Kind, text: String(text) }
  return { kind: 'done', goesOn: result !== false, changes: String(changes), payload }
}

async function run(task: ScriptTask): Promise<ScriptReply> {
  const { source, state, payload, envelope } = task
  try {
    if (source.kind !== 'module') return runText(source, task)
    const script = await modules.function(source.path, source.function)
    // Threads without modules load no conversion.
    const { payloadXml } = await import('../mediation/json-xml.ts')
    const xmlOf = (kind: 'json' | 'text', text: string) => payloadXml({ kind, text })
    const message = new ScriptMessage(state, payload, envelope, xmlOf)
    return done(await script(message), ScriptMessage.end(message))
  } catch (error) {
    return { kind: 'failed', cause: causeOf(error, source) }
  }
}

/** Class of the error, its message where that is text of the script alone, and its place in the script. */
function causeOf(error: unknown, source: ScriptSource): string {
  if (error instanceof Error && error.name === 'ModuleError') return error.message
  // An error of another context is no instance of Error here.
  const { name, stack, message } = (typeof error === 'object' && error !== null ? error : {}) as Partial<Error>
  const file = source.kind === 'module' ? source.path : source.label
  const at = typeof stack === 'string' ? placeIn(stack, file) : ''
  const what = typeof name === 'string' && /^\w{1,100}$/.test(name) ? name : 'a value'
  const said = typeof message === 'string' ? message : ''
  // The text of a syntax error of a module quotes the script alone.
  const isOfModule = what === 'SyntaxError' && error instanceof SyntaxError
  const isOfScript = isOfModule || (source.kind !== 'module' && isTextOf(source.text, said))
  const why = isOfScript ? `: ${said.slice(0, MESSAGE_MAX)}` : ''
  return `the script throws ${what}${why}${at}`
}

const MESSAGE_MAX = 200
/** Messages of the engine about a part of the script. */
const ENGINE_MESSAGES = [
  /^(.+) is not (?:defined|a function|a constructor|iterable)$/,
  /^Cannot (?:read|set) properties of (?:undefined|null) \((?:reading|setting) '(.+)'\)$/,
]

/** What a message quotes stands in the script: other messages may hold text of a client. */
function isTextOf(script: string, message: string): boolean {
  const quoted = ENGINE_MESSAGES.map(form => form.exec(message)?.[1]).find(part => part !== undefined) ?? message
  // The engine leaves out arguments of calls.
  return quoted !== '' && quoted.split(/(?<=\()\.{3}(?=\))/).every(part => script.includes(part))
}

function placeIn(stack: string, file: string): string {
  const from = stack.indexOf(`${file}:`)
  const fromModule = from < 0 ? stack.indexOf(`${file}?`) : from
  if (fromModule < 0) return ''
  const line = /^(?:\?[\d.]+)?:(\d+)/.exec(stack.slice(fromModule + file.length))?.[1]
  return line === undefined ? '' : `, ${file}:${line}`
}

// An error that a script leaves behind must not end the thread under the next one.
process.on('unhandledRejection', () => undefined)
const { memory } = workerData as { readonly memory?: Float64Array }
const report = memory === undefined ? null : new MemoryReport(memory)
parentPort!.on('message', async (task: ScriptTask) => {
  parentPort!.postMessage(await run(task))
  report?.update()
})
parentPort!.postMessage(READY)
