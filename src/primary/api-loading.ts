/** The APIs of a home as this gateway has them: what the configuration says of it, and of what they need. */
import type { ApiDefinitions, ApiProjects } from '../config/api-definitions.ts'
import type { Configuration } from '../config/catalogue.ts'
import { unaskedCertificates } from '../config/certificate-listener.ts'
import type { GatewayPlace } from '../config/gateway-environments.ts'
import { withheldCredentials } from '../config/merged-cors.ts'
import { missingSender } from '../config/websocket-senders.ts'
import { partsOf } from './node-parts.ts'
import { hostName } from '../structure/host-name.ts'

/** `inForce`: what projects that are faulty now go on with. */
export function loadApis(
  projects: ApiProjects,
  configuration: Configuration,
  inForce: ApiDefinitions['projects'],
): ApiDefinitions {
  // Whoever gives tokens gives them for every gateway.
  if (!partsOf(configuration).runsGateway) return projects.load(undefined, inForce)
  const place = gatewayPlace(configuration)
  const loaded = projects.load(api => missingSender(api, configuration), inForce, place)
  const judges = [withheldCredentials, unaskedCertificates]
  const found = loaded.apis.flatMap(api => judges.flatMap(judge => judge(api, configuration) ?? []))
  return { ...loaded, warnings: [...loaded.warnings, ...found] }
}

/** It is of the environments that its labels name, or of all where they name none; any of them may have its hosts. */
function gatewayPlace(configuration: Configuration): GatewayPlace {
  const labels = new Set(configuration['apim.sync_runtime_artifacts.gateway'].gateway_labels)
  const environments = configuration['apim.gateway.environment']
  const named = environments.filter(environment => labels.has(environment.name))
  const own = named.length === 0 ? environments : named
  const takes = (type: 'production' | 'sandbox'): boolean =>
    own.length === 0 || own.some(environment => environment.type === 'hybrid' || environment.type === type)
  const addresses = [
    ...environments.flatMap(environment => {
      return [environment.https_endpoint, environment.http_endpoint, environment.ws_endpoint]
    }),
    ...configuration['apim.gateway.environment.virtual_host'].flatMap(virtualHost => {
      return [virtualHost.https_endpoint, virtualHost.http_endpoint, virtualHost.ws_endpoint, virtualHost.wss_endpoint]
    }),
  ]
  const hosts = addresses.flatMap(address => hostName(URL.parse(address)?.hostname ?? '') || [])
  return {
    labels,
    takes: { production: takes('production'), sandbox: takes('sandbox') },
    hosts: environments.length === 0 ? null : new Set(hosts),
  }
}
