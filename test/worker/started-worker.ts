/** A worker thread for tests: flows of one API, with what comes back. */
import assert from 'node:assert/strict'
import type { WorkerService } from '../../src/mediation/worker-service.ts'
import { type FlowResult, type FlowTask, NO_STATE, type TransferredMessage } from '../../src/mediation/worker-task.ts'
import { MetricsColumn } from '../../src/observe/metrics.ts'
import { apiIdentity } from '../../src/plan/reactor-plan.ts'
import { ReactorWorkers } from '../../src/reactor/reactor-workers.ts'
import { temporaryHome } from '../config/temporary-home.ts'
import { builtWorkerEntry } from '../harness/built-program.ts'
import { type FlowTexts, flowsOf } from '../harness/flows.ts'
import { type GatewayOptions, planGateway } from '../harness/gateway.ts'
import { type Owner, sharedBySuite } from '../harness/suite.ts'

interface Worker {
  readonly service: WorkerService
  readonly calls: unknown[]
  readonly reports: { readonly event: string; readonly fields: Readonly<Record<string, unknown>> }[]
  run(message?: Partial<TransferredMessage>, sequences?: readonly string[]): Promise<FlowResult>
}

/** `t`: whoever ends the worker; for one that the tests of a file share, the hooks of the file. */
export async function startWorker(t: Owner, texts: FlowTexts, options: GatewayOptions = {}): Promise<Worker> {
  const mediation = await flowsOf(texts)
  const overrides = { mediation: { ...mediation, flows: needingWorkers(mediation.flows) } }
  const { plan } = planGateway([{ context: '/a', port: 9, overrides }], options)
  const api = apiIdentity(plan.apis[0]!)
  const reports: Worker['reports'] = []
  const calls: unknown[] = []
  const workers = new ReactorWorkers(plan, {
    report: (_level, event, fields) => reports.push({ event, fields }),
    metrics: new MetricsColumn(plan.metrics, 0),
    receive: () => undefined,
    count: () => undefined,
    left: () => undefined,
    entry: builtWorkerEntry(),
    serve: call => {
      calls.push(call)
      if (call.kind === 'background') return workers.services.plain.background(call.task) !== null
      return { kind: 'response', message: { ...MESSAGE, status: 200, body: json('{"from":"backend"}') } }
    },
  })
  t.after(() => workers.close())
  const service = workers.services.plain
  return {
    ...{ service, calls, reports },
    run: (message = {}, sequences = ['api--In']) => {
      const flow = { kind: 'flow', api, flow: 'request', sequences } as const
      return service.mediate({ ...flow, message: { ...MESSAGE, ...message } } satisfies FlowTask, 0)
    },
  }
}

/** A worker that the tests of a suite share; the suite calls this while it is defined. `files`: of the home. */
export function suiteWorker(
  texts: FlowTexts,
  files: Readonly<Record<string, string>> = {},
  options: GatewayOptions = {},
): Promise<Worker> {
  return sharedBySuite(suite => startWorker(suite, texts, { home: temporaryHome(suite, files), ...options }))
}

type Flows = Awaited<ReturnType<typeof flowsOf>>['flows']

function needingWorkers({ request, response, fault }: Flows): Flows {
  return { request: { ...request, needs: 'worker' }, response, fault }
}

const MESSAGE: TransferredMessage = {
  method: 'POST',
  target: '/pets?limit=5',
  status: 0,
  reason: '',
  fields: [['Content-Type', 'application/json']],
  body: { kind: 'none' },
  state: NO_STATE,
}

export function json(text: string): TransferredMessage['body'] {
  return { kind: 'bytes', bytes: new TextEncoder().encode(text) }
}

export function messageOf(result: FlowResult): TransferredMessage {
  // The text of a body of megabytes takes a second: it is made only for a failure.
  if (!('message' in result)) assert.fail(JSON.stringify(result))
  return result.message
}

export function textOf({ body }: TransferredMessage): string {
  assert.ok(body.kind === 'bytes', body.kind)
  return new TextDecoder().decode(body.bytes)
}
