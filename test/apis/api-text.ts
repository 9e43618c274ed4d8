/** The text of an exported API with an endpoint of each kind; operations and whatever else it says come behind it. */
export const API_OF_BOTH_KINDS = `type: api
version: v4.3.0
data:
  name: A
  context: /a
  version: "1"
  endpointConfig:
    endpoint_type: http
    production_endpoints: {url: "http://p"}
    sandbox_endpoints: {url: "http://s"}
`
