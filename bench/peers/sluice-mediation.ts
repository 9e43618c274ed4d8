/** Variants of the gateway whose APIs have flows: a body that a worker transforms, and a policy of constant fields. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Capability } from '../scenarios.ts'
import type { Peer, PeerOptions } from './peer.ts'
import { ROOT, versionOf, writeHome } from './sluice.ts'
import { startVariant } from './sluice-variants.ts'

const LOOP_DELAY = fileURLToPath(new URL('loop-delay.js', import.meta.url))

const TRANSFORMING_SEQUENCE = `<sequence xmlns="http://ws.apache.org/ns/synapse" name="Mediation:v1.0.0--In">
  <payloadFactory media-type="json">
    <format>{"id": $1, "buyer": $2, "lines": $3, "source": "gateway"}</format>
    <args>
      <arg evaluator="json" expression="$.orderId"/>
      <arg evaluator="json" expression="$.customer"/>
      <arg evaluator="json" expression="$.items"/>
    </args>
  </payloadFactory>
</sequence>
`

/** Lines of api.yaml. */
const HEADER_POLICIES = `  apiPolicies:
    request:
      - policyName: addHeader
        policyVersion: v1
        parameters: { headerName: X-Shop, headerValue: main }
    response:
      - policyName: addHeader
        policyVersion: v1
        parameters: { headerName: X-Content-Type-Options, headerValue: nosniff }
`

/** A home with an API for orders, and one beside it that passes requests to the backend of downloads. */
function writeMediatedHome(
  home: string,
  { uploadPort, downloadPort }: Pick<PeerOptions, 'uploadPort' | 'downloadPort'>,
  transforms: boolean,
): void {
  writeHome(home, [
    { name: 'Mediation', context: '/mediation', ports: [uploadPort] },
    { name: 'Bench', context: '/bench', ports: [downloadPort] },
  ])
  if (!transforms) return
  const folder = `${home}/apis/Mediation/Sequences`
  mkdirSync(folder)
  writeFileSync(`${folder}/Mediation:v1.0.0--In.xml`, TRANSFORMING_SEQUENCE)
}

type WriteHome = (home: string, options: PeerOptions) => void

function peer(name: string, capabilities: readonly Capability[], write: WriteHome): Peer {
  return {
    name,
    capabilities,
    missing: () => undefined,
    version: () => versionOf(ROOT),
    start(options) {
      write(`${options.folder}/home`, options)
      return startVariant(options, options.capability === 'mediation-delay' ? { imports: [LOOP_DELAY] } : {})
    },
  }
}

function passing(name: string, lines: string): Peer {
  return peer(name, ['mediation-headers'], (home, { downloadPort }) =>
    writeHome(home, [{ name: 'Bench', context: '/bench', ports: [downloadPort], lines }]),
  )
}

export const MEDIATING_SLUICE: readonly Peer[] = [
  peer('sluice-mediated', ['mediation', 'mediation-delay'], (home, options) => writeMediatedHome(home, options, true)),
  peer('sluice-unmediated', ['mediation', 'mediation-delay'], (home, options) =>
    writeMediatedHome(home, options, false),
  ),
  passing('sluice-no-policy', ''),
  passing('sluice-header-policy', HEADER_POLICIES),
]
