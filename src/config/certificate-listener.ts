/** An API that knows clients by their certificates beside a listener that asks nobody for one. */
import { MANDATORY, SCHEMES } from './api-access.ts'
import type { ApiDefinition } from './api-definition.ts'
import type { Configuration } from './catalogue.ts'
import type { Fault } from './fault.ts'

const KEY = 'transport.passthru_https.listener.parameters.SSLVerifyClient'

/** Why nobody can be known by a certificate, although that is asked for. */
export function unaskedCertificates(
  { name, version, access, clientCertificates }: ApiDefinition,
  configuration: Configuration,
): Fault | undefined {
  const asks = access.securitySchemes.some(
    scheme => SCHEMES[scheme] === 'mutual_tls' || scheme === MANDATORY.certificate,
  )
  if (!asks) return undefined
  const told = (expected: string, remedy: string): Fault => {
    return { where: `API ${name} ${version}`, key: '', given: '', expected, remedy }
  }
  if (clientCertificates.length === 0) {
    const expected = 'knows clients by their certificates, and its project lists none: nobody is known by one'
    return told(expected, 'list them in Client-certificates/client_certificates.yaml')
  }
  const https = configuration['transport.passthru_https']
  const verify = https['listener.parameters.SSLVerifyClient'].toLowerCase()
  // A profile may ask for them where the listener does not.
  if ((verify !== '' && verify !== 'none') || https['listener.ssl_profile.file_path'] !== '') return undefined
  return told('knows clients by their certificates, and no listener asks for one', `set ${KEY} to optional or require`)
}
