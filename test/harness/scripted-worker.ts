/** Workers in the process of the test: they record each task and do what the test says. */
import { readFileSync } from 'node:fs'
import type { FlowsPlan } from '../../src/mediation/flow-plan.ts'
import type { FlowResult, FlowTask, TransferredBody, TransferredMessage } from '../../src/mediation/worker-task.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'

type Script = (task: FlowTask) => FlowResult | Promise<FlowResult>

export class ScriptedWorker {
  /** In order, as the worker has got them. */
  readonly tasks: FlowTask[] = []
  /** Bodies of the tasks, in order. */
  readonly bodies: Buffer[] = []
  /** What becomes of each task; by default every message goes on as it is. */
  script: Script = unchanged

  async mediate(task: FlowTask, bytes: number): Promise<FlowResult> {
    const { body } = task.message
    // As between threads: the buffer of the body moves.
    const transfer = body.kind === 'bytes' ? [body.bytes.buffer as ArrayBuffer] : []
    const own = structuredClone(task, { transfer })
    this.tasks.push(own)
    this.bodies.push(bodyOf(own.message.body))
    if (this.bodies.at(-1)!.length !== bytes) throw new Error(`${bytes} bytes were announced`)
    return this.script(own)
  }
}

function bodyOf(body: TransferredBody): Buffer {
  if (body.kind === 'bytes') return Buffer.from(body.bytes)
  return body.kind === 'file' ? readFileSync(body.path) : Buffer.alloc(0)
}

/** The flow has read nothing. */
export function unchanged({ message }: FlowTask): FlowResult {
  return going(message, { body: { kind: message.body.kind === 'none' ? 'none' : 'untouched' } })
}

/** The message goes on with these changes. */
export function going(message: TransferredMessage, changes: Partial<TransferredMessage>): FlowResult {
  return { kind: 'continues', message: { ...message, ...changes }, endpoint: '' }
}

/** The message goes on with its body in capitals. */
export function uppercase({ message }: FlowTask): FlowResult {
  return going(message, { body: textBody(bodyOf(message.body).toString('latin1').toUpperCase()) })
}

/** A request that a flow answers. */
export function responding(task: FlowTask, status: number, text: string): FlowResult {
  const message = { ...task.message, status, reason: '', fields: [], body: textBody(text) }
  return { kind: 'responds', message, endpoint: '' }
}

/** A request that becomes a response, on which the response flow runs. */
export function looping({ message }: FlowTask, text: string): FlowResult {
  return {
    kind: 'loops',
    message: { ...message, status: 200, reason: '', fields: [], body: textBody(text) },
    endpoint: '',
  }
}

export function raising({ message }: FlowTask, code: number, text = '', sequence = ''): FlowResult {
  const fault = { code, message: text, detail: '', cause: 'the test raises a fault', sequence }
  return { kind: 'faults', fault, state: message.state }
}

export function textBody(text: string): TransferredBody {
  return text === '' ? { kind: 'none' } : { kind: 'bytes', bytes: new Uint8Array(Buffer.from(text, 'latin1')) }
}

/** Overrides of an API whose flows of these names need a worker. */
export function workerFlows(...names: readonly (keyof FlowsPlan)[]): Pick<ApiPlan, 'mediation'> {
  const flow = (name: keyof FlowsPlan) =>
    names.includes(name)
      ? ({ sequences: [`${name}-sequence`], needs: 'worker' } as const)
      : ({ sequences: [], needs: 'nothing' } as const)
  const flows = { request: flow('request'), response: flow('response'), fault: flow('fault') }
  return { mediation: { sequences: [], flows, byOperation: {} } }
}
