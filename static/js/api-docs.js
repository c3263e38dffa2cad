// Show the API's schema and let people try it with their own session.
const page = document.getElementById("api-docs");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.schema,
  validatorUrl: null, // nothing leaves this site
  docExpansion: "list",
  deepLinking: true,
  filter: true, // of so many operations only those in view are in the page
  requestInterceptor(request) {
    if (request.method && request.method !== "GET") {
      request.headers["X-CSRFToken"] = page.dataset.csrfToken;
    }
    return request;
  },
});
