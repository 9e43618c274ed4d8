/** APIs with mediation flows for tests: the sequences of a flow are given as the elements within `<sequence>`. */
import type { TestContext } from 'node:test'
import { type ApiMediationPlan, type FlowPlan, type FlowsPlan, gathersCopies } from '../../src/mediation/flow-plan.ts'
import { callerPropertiesOf } from '../../src/mediation/caller-properties.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import type { SequencePlan } from '../../src/mediation/sequence-plan.ts'
import { type GatewayOptions, startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { type Peer, ScriptedBackend } from './peers.ts'
import { planOf } from '../mediation/test-sequences.ts'

export interface FlowTexts {
  readonly request?: string
  readonly response?: string
  readonly fault?: string
  /** Further sequences by name. */
  readonly others?: Readonly<Record<string, string>>
}

/** `byOperation`: flows of operations, by `VERB template`. */
export async function flowsOf(
  texts: FlowTexts,
  byOperation: Readonly<Record<string, FlowTexts>> = {},
): Promise<ApiMediationPlan> {
  const sequences: SequencePlan[] = []
  const flow = async (name: string, text: string): Promise<FlowPlan> => {
    if (text === '') return { sequences: [], needs: 'nothing' }
    sequences.push(await planOf(text, name))
    const lookup = (wanted: string) => sequences.find(({ name }) => name === wanted)
    const reads = callerPropertiesOf([name], lookup)
    const plan = { sequences: [name], needs: needsOf([name], lookup), ...(reads.length === 0 ? {} : { reads }) }
    return name.endsWith('Out') && gathersCopies([name], lookup) ? { ...plan, gathers: true } : plan
  }
  const flows = async (prefix: string, { request = '', response = '', fault = '', others = {} }: FlowTexts) => {
    for (const [name, text] of Object.entries(others)) sequences.push(await planOf(text, name))
    return {
      request: await flow(`${prefix}In`, request),
      response: await flow(`${prefix}Out`, response),
      fault: await flow(`${prefix}Fault`, fault),
    }
  }
  const ofApi: FlowsPlan = await flows('api--', texts)
  const ofOperations: Record<string, FlowsPlan> = {}
  for (const [key, each] of Object.entries(byOperation)) ofOperations[key] = await flows(`${key}--`, each)
  return { sequences, flows: ofApi, byOperation: ofOperations }
}

export const set = (name: string, value: string) => `<property name="${name}" value="${value}" scope="transport"/>`
export const remove = (name: string) => `<property name="${name}" scope="transport" action="remove"/>`
export const setAxis2 = (name: string, value: string) => `<property name="${name}" value="${value}" scope="axis2"/>`

export interface FlowGateway {
  readonly gateway: TestGateway
  readonly backend: ScriptedBackend
}

/** Starts a gateway with one API per plan: `/a`, `/b` …, all with the same backend. */
export async function startFlows(
  t: TestContext,
  plans: readonly (ApiMediationPlan | null)[],
  options: GatewayOptions = {},
  api: Partial<TestApi> = {},
): Promise<FlowGateway> {
  const backend = await ScriptedBackend.listen()
  const apis = plans.map((mediation, index) => ({
    context: `/${'abcdef'[index]}`,
    port: backend.port,
    ...api,
    overrides: { ...api.overrides, mediation },
  }))
  const gateway = await startGateway(apis, options)
  t.after(() => {
    gateway.stop()
    backend.close()
  })
  return { gateway, backend }
}

/** Waits for a head and takes it, without correlation id and Date. */
export async function takeHead(peer: Peer): Promise<string> {
  await peer.untilText('\r\n\r\n')
  const head = peer.take(peer.text.indexOf('\r\n\r\n') + 4)
  return head.replace(/^activityid: .*\r\n/im, '').replace(/^date: .*\r\n/im, '')
}
