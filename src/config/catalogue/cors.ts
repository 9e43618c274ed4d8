/** `[apim.cors]`: the default CORS policy of APIs. */
import { CORS_LINE_LIMIT, fitsCorsLine, isAnyOrigin, isWildcardOrigin } from '../cors-rules.ts'
import { isTrue } from '../conditions.ts'
import { allActIf, withSpecialValue, live, section } from '../key.ts'
import { duration, fieldNames, flag, list } from '../kinds.ts'

const DAY_S = 86_400

const methods = fieldNames(
  ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'],
  'Methods that a preflight response allows.',
)

export const cors = section(
  'apim.cors',
  'CORS policy of APIs without a policy of their own. The gateway answers preflight requests; backends never ' +
    'receive them.',
  {
    enable: live(flag(true, 'Answer preflight requests and add CORS fields to responses.')),
    ...allActIf(isTrue('.enable'), {
      allow_origins: live(
        list(
          ['*'],
          'Origins that may read responses; `*` is any, `https://*.example.com` any with that beginning and end.',
        ),
      ),
      // RFC 9110 9.1: a method is a token, as the name of a field is.
      allow_methods: live({
        ...methods,
        kind: 'methods',
        expects: 'methods such as "GET", a list or one text with commas',
      }),
      allow_headers: live(
        fieldNames(
          ['authorization', 'Access-Control-Allow-Origin', 'Content-Type', 'SOAPAction'],
          'Request fields that a preflight response allows.',
        ),
      ),
      allow_credentials: live(flag(false, 'Let browsers send cookies and credentials; requires named origins.')),
      expose_headers: live(fieldNames([], 'Response fields that pages may read beside the CORS-safelisted ones.')),
      max_age: live(
        withSpecialValue(
          -1,
          "the browser's default",
          duration(-1, 's', 0, DAY_S, 'How long a browser may cache a preflight response.'),
        ),
      ),
    }),
  },
  {
    roles: ['gateway-worker'],
    rules: [
      {
        keys: ['allow_credentials', 'allow_origins'],
        must: 'allow_origins must name its origins where allow_credentials is true: any page could act for its visitor',
        severity: 'error',
        holds: it => !it.allow_credentials || !it.allow_origins.some(isAnyOrigin),
      },
      {
        keys: ['allow_credentials', 'allow_origins'],
        must: 'allow_credentials has no effect for origins that any site can match, such as "null" and "https://*"',
        severity: 'warning',
        holds: it =>
          !it.allow_credentials || !it.allow_origins.some(origin => isWildcardOrigin(origin) && !isAnyOrigin(origin)),
      },
      {
        keys: ['allow_headers'],
        must: `allow_headers must be ${CORS_LINE_LIMIT}`,
        severity: 'error',
        holds: it => fitsCorsLine(it.allow_headers),
      },
      {
        keys: ['allow_methods'],
        must: `allow_methods must be ${CORS_LINE_LIMIT}`,
        severity: 'error',
        holds: it => fitsCorsLine(it.allow_methods),
      },
      {
        keys: ['expose_headers'],
        must: `expose_headers must be ${CORS_LINE_LIMIT}`,
        severity: 'error',
        holds: it => fitsCorsLine(it.expose_headers),
      },
      {
        keys: ['allow_origins'],
        must: 'an origin is a scheme, a host and an optional port: with a slash at its end, it matches no origin',
        severity: 'warning',
        holds: it => !it.allow_origins.some(origin => /:\/\/.*\//.test(origin)),
      },
      {
        keys: ['allow_origins'],
        must: 'a star at the end of a host matches domains of other owners: put the star at its beginning',
        severity: 'warning',
        holds: it => !it.allow_origins.some(origin => /:\/\/.*[^/:*]\*+$/.test(origin)),
      },
    ],
  },
)
