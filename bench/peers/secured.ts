/**
 * The gateway with and without tokens that it has to check: the same exported project, once with auth type None and
 * once with a token for each operation, an issuer of its own, and an application that a file declares.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { PROXY_CORE } from '../program.ts'
import { CLIENT, ISSUER, tokenIssuer } from '../token-issuer.ts'
import { writeExported } from './exported-project.ts'
import type { Peer } from './peer.ts'
import { ROOT, startSluice, stateOf } from './sluice.ts'

/** One issuer; its tokens are one client's, which has subscribed to the API. */
function deploymentOf(keySetUrl: string): string {
  return `# Written by the bench: everything else is the default.
[[apim.jwt.issuer]]
name = "${ISSUER}"
"jwks.url" = "${keySetUrl}"
algorithms = ["RS256"]
`
}

const APPLICATION = `name: Bench
keys:
  - consumerKey: ${CLIENT}
    issuer: ${ISSUER}
subscriptions:
  - api: Chain:1.0.0
`

/** `downloadPort`: of the backend. */
export function writeSecuredHome(home: string, downloadPort: number, keySetUrl: string, secured: boolean): void {
  mkdirSync(`${home}/applications`, { recursive: true })
  writeFileSync(`${home}/deployment.toml`, deploymentOf(keySetUrl))
  writeFileSync(`${home}/applications/bench.yaml`, APPLICATION)
  const url = `http://127.0.0.1:${downloadPort}`
  writeExported(home, { name: 'Chain', context: '/chain', url, documented: false, secured })
}

function securedSluice(name: string, secured: boolean, settings: Readonly<Record<string, string>>): Peer {
  return {
    name,
    abilities: ['secured'],
    missing: () => undefined,
    version: () => stateOf(ROOT),
    async start({ folder, port, downloadPort }) {
      const home = `${folder}/home`
      writeSecuredHome(home, downloadPort, await tokenIssuer().keySetUrl(), secured)
      const where = { home, data: `${folder}/data`, port, reactors: 1, cores: PROXY_CORE, profileFolder: undefined }
      const program = startSluice({ ...where, settings: { 'management.enable': 'false', ...settings } })
      await program.line(/^ready\b/)
      return program
    },
  }
}

export const SECURED: readonly Peer[] = [
  securedSluice('sluice-open', false, {}),
  securedSluice('sluice-secured', true, {}),
  securedSluice('sluice-secured-log', true, { 'access_log.target': 'file' }),
]
