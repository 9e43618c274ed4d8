/** Faults that sequences cause: each API has one request flow, on a worker or, over heads alone, on the reactor. */
import type { ApiMediationPlan } from '../../src/mediation/flow-plan.ts'
import type { FaultCase } from './fault-cases.ts'
import { flowsOf } from './flows.ts'
import type { GatewayOptions, TestApi } from './gateway.ts'
import { planEndpoints } from './sequence-calls.ts'

/** Longest body that a sequence reads. */
const BODY_MAX = 40

interface MediationCase extends Omit<FaultCase, 'request' | 'sequence' | 'name'> {
  readonly name: string
  /** The request flow. `port`: of a backend that answers `{"result":false}` at `/refuses`, and `ok` elsewhere. */
  readonly steps: (port: number) => string
  readonly length?: number
  readonly sequence?: string
}

const opa = (url: string) => `<opa serverUrl="${url}" policy="p" rule="r"/>`
const branch = (steps: string) => `<target><sequence>${steps}</sequence></target>`
const gather = (condition: string) => `<aggregate>${condition}<onComplete expression="json-eval($)"/></aggregate>`
const json = (text: string) => `<payloadFactory media-type="json"><format>${text}</format><args/></payloadFactory>`
const http = (port: number, path: string) =>
  `<endpoint><http method="get" uri-template="http://127.0.0.1:${port}${path}"/></endpoint>`
const FAILED = { status: '500 Internal Server Error', message: 'Mediation failed' } as const
const TOO_LONG = 'The body of the request is longer than a sequence may read'

const CASES: readonly MediationCase[] = [
  {
    name: 'a body that is longer than a sequence reads',
    code: 102530,
    status: '413 Content Too Large',
    message: 'Request body too large',
    description: TOO_LONG,
    steps: () => '<filter xpath="//a"><then/></filter>',
    length: BODY_MAX + 1,
  },
  {
    ...FAILED,
    name: 'a request of a sequence that cannot be sent',
    code: 102532,
    description: 'A sequence has made a message that cannot be sent',
    steps: () => `<property name="HTTP_METHOD" value="CONNECT" scope="axis2"/>${json('1')}`,
  },
  {
    name: 'a sequence that runs itself',
    code: 102545,
    status: '500 Internal Server Error',
    message: 'Mediation limit reached',
    description: 'The message has entered more sequences, or run more mediators, than one message may',
    steps: () => '<property name="a" value="1"/><sequence key="api--In"/>',
  },
  {
    name: 'a response to a call that is longer than a sequence reads',
    code: 102550,
    status: '502 Bad Gateway',
    message: 'Response body too large',
    description: 'The response to a call of a sequence is longer than a sequence may read',
    steps: port => `<call>${http(port, '/long')}</call>`,
  },
  {
    name: 'a call without a destination',
    code: 102551,
    status: '500 Internal Server Error',
    message: 'Invalid destination',
    description: 'A sequence has made a request that cannot be sent',
    steps: () => '<header name="To" value="none"/><call/>',
  },
  {
    name: 'a message that is split into too many parts',
    code: 102553,
    status: '500 Internal Server Error',
    message: 'Too many copies',
    description: 'A sequence has split a message into more parts than the gateway allows',
    steps: () =>
      `${json(JSON.stringify(Array.from({ length: 1001 }, () => 1)))}
      <iterate expression="json-eval($)">${branch('<log level="custom"/>')}</iterate>${gather('')}`,
  },
  {
    name: 'an aggregate with too few messages',
    code: 102554,
    status: '504 Gateway Timeout',
    message: 'Incomplete aggregation',
    description: 'A sequence has not got the responses that it needs',
    steps: () =>
      `<clone>${branch('<log level="custom"/>')}</clone>
      ${gather('<completeCondition timeout="1"><messageCount min="2" max="2"/></completeCondition>')}`,
  },
  {
    name: 'a request that a policy server refuses',
    code: 102555,
    status: '403 Forbidden',
    message: 'Forbidden',
    description: 'The policy server refuses the request',
    steps: port => opa(`http://127.0.0.1:${port}/refuses`),
  },
  {
    name: 'a policy server that does not decide',
    code: 102556,
    status: '500 Internal Server Error',
    message: 'No policy decision',
    description: 'The policy server has not decided',
    steps: port => opa(`http://127.0.0.1:${port}/healthy`),
  },
]

const pathOf = ({ code }: MediationCase) => `/sequence-${code}`

export const MEDIATION_CASES: readonly FaultCase[] = CASES.map(each => {
  const { steps: _steps, length = 0, sequence = 'fault', ...rest } = each
  const body = 'x'.repeat(length)
  const framing = length === 0 ? '' : `Content-Length: ${length}\r\n`
  const request = `${length === 0 ? 'GET' : 'POST'} ${pathOf(each)} HTTP/1.1\r\nHost: a\r\n%${framing}\r\n${body}`
  return { ...rest, sequence, request }
})

/** The APIs of the cases, and what the gateway needs for them. `port`: see `MediationCase`. */
export async function mediationApis(
  port: number,
): Promise<{ readonly apis: readonly TestApi[]; readonly options: GatewayOptions }> {
  const plans: ApiMediationPlan[] = []
  for (const { steps } of CASES) plans.push(await flowsOf({ request: steps(port) }))
  const apis = CASES.map((each, at) => ({ context: pathOf(each), port, overrides: { mediation: plans[at]! } }))
  const sequenceEndpoints = planEndpoints(plans.flatMap(({ sequences }) => sequences))
  const bodies = { bytesMax: BODY_MAX, memoryMax: BODY_MAX, pieceBytes: 4096 }
  return { apis, options: { sequenceEndpoints, bodies } }
}
